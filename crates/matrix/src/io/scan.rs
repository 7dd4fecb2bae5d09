//! Words of a text file, line by line, without holding a line in memory.
//!
//! Each method that reads fails with a [`ReadError`] where reading does, and at a word that is longer than 128 bytes or no
//! UTF-8.

use super::error::{Place, ReadError};
use std::fmt::Display;
use std::io::BufRead;
use std::str::FromStr;

/// The longest word taken. No number of these formats needs as much.
const MAX_WORD: usize = 128;

/// Splits a text into words at spaces, tabs, carriage returns and one more byte of choice.
pub struct Scanner<R> {
    reader: R,
    separator: u8,
    line: u64,
    word: Vec<u8>,
}

impl<R: BufRead> Scanner<R> {
    /// Starts on line 1. `separator` separates words like a space does; give a space for none.
    pub fn new(reader: R, separator: u8) -> Self {
        Self { reader, separator, line: 1, word: Vec::with_capacity(MAX_WORD) }
    }

    /// The line that the scanner stands on.
    pub fn place(&self) -> Place {
        Place::Line(self.line)
    }

    /// The next byte of this line that is no separator, not taken; `None` at the end of the line or file.
    pub fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        loop {
            match self.next_byte()? {
                None | Some(b'\n') => return Ok(None),
                Some(byte) if self.separates(byte) => self.reader.consume(1),
                Some(byte) => return Ok(Some(byte)),
            }
        }
    }

    /// The next word of this line; `None` at its end.
    pub fn word(&mut self) -> Result<Option<&str>, ReadError> {
        self.word.clear();
        self.peek()?;
        while let Some(byte) = self.next_byte()? {
            if byte == b'\n' || self.separates(byte) {
                break;
            }
            if self.word.len() == MAX_WORD {
                return Err(self.syntax("a short word", &shorten(&self.word)));
            }
            self.word.push(byte);
            self.reader.consume(1);
        }
        match std::str::from_utf8(&self.word) {
            Ok("") => Ok(None),
            Ok(word) => Ok(Some(word)),
            Err(_) => Err(self.syntax("ASCII text", &shorten(&self.word))),
        }
    }

    /// The next byte of the file, not taken.
    fn next_byte(&mut self) -> Result<Option<u8>, ReadError> {
        match self.reader.fill_buf() {
            Ok(bytes) => Ok(bytes.first().copied()),
            Err(source) => Err(ReadError::Io { place: Some(Place::Line(self.line)), source }),
        }
    }

    fn separates(&self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\r') || byte == self.separator
    }

    /// Goes to the start of the next line, over whatever is left of this one; `false` if the file ends.
    pub fn next_line(&mut self) -> Result<bool, ReadError> {
        loop {
            let place = self.place();
            let bytes =
                self.reader.fill_buf().map_err(|source| ReadError::Io { place: Some(place), source })?;
            let newline = bytes.iter().position(|&byte| byte == b'\n');
            let (taken, ended) = (newline.map_or(bytes.len(), |at| at + 1), bytes.is_empty());
            self.reader.consume(taken);
            if newline.is_some() {
                self.line += 1;
                return Ok(true);
            }
            if ended {
                return Ok(false);
            }
        }
    }

    /// The next word of this line as `parse` takes it, or an error that says `expected`.
    pub fn parse<T>(
        &mut self,
        expected: impl Display,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ReadError> {
        let got = match self.word()? {
            None => "the end of the line".into(),
            Some(word) => match parse(word) {
                Some(parsed) => return Ok(parsed),
                None => shorten(word.as_bytes()),
            },
        };
        Err(self.syntax(expected, &got))
    }

    /// The next word of this line as a number of type `T`, or an error that says `expected`.
    pub fn number<T: FromStr>(&mut self, expected: &str) -> Result<T, ReadError> {
        self.parse(expected, |word| word.parse().ok())
    }

    /// An error unless this line has no more words.
    pub fn end_of_line(&mut self) -> Result<(), ReadError> {
        match self.word()?.map(|word| shorten(word.as_bytes())) {
            None => Ok(()),
            Some(got) => Err(self.syntax("the end of the line", &got)),
        }
    }

    /// An error at this line.
    pub fn syntax(&self, expected: impl Display, got: &str) -> ReadError {
        ReadError::Syntax { place: self.place(), expected: expected.to_string(), got: got.into() }
    }
}

/// Bytes of a file as part of a message: quoted, escaped, and cut after a few.
pub fn shorten(bytes: &[u8]) -> String {
    const SHOWN: usize = 24;
    let dots = if bytes.len() > SHOWN { "..." } else { "" };
    format!("`{}{dots}`", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}
