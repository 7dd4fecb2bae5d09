//! The header of an `.npy` file: a Python dictionary of three entries.
//!
//! It is parsed here, by a loop without recursion, because a reader of all Python literals can be made to
//! overflow its stack by a nested one.

use super::super::scan::shorten;

/// What the header says.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) descr: Option<String>,
    pub(super) fortran_order: Option<bool>,
    pub(super) shape: Option<Vec<u64>>,
}

/// What was expected and what was got instead.
pub(super) type Unexpected = (String, String);

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, its entries in any order.
pub(super) fn parse(text: &[u8]) -> Result<Header, Unexpected> {
    let mut text = Text(text);
    let mut header = Header::default();
    text.expect("{")?;
    while !text.accept("}") {
        let key = text.string()?;
        text.expect(":")?;
        match key.as_str() {
            "descr" => header.descr = Some(text.string()?),
            "fortran_order" => header.fortran_order = Some(text.boolean()?),
            "shape" => header.shape = Some(text.tuple()?),
            _ => return Err(("'descr', 'fortran_order' or 'shape'".into(), shorten(key.as_bytes()))),
        }
        if !text.accept(",") {
            text.expect("}")?;
            break;
        }
    }
    match text.rest() {
        [] => Ok(header),
        rest => Err(("the end of the header".into(), shorten(rest))),
    }
}

/// What is left of the header.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn rest(&mut self) -> &[u8] {
        self.0 = self.0.trim_ascii_start();
        self.0
    }

    /// Takes `token` if it comes next.
    fn accept(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token.as_bytes());
        if found {
            self.0 = &self.0[token.len()..];
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), Unexpected> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}`"))) }
    }

    fn string(&mut self) -> Result<String, Unexpected> {
        let quote = match self.rest().first() {
            Some(&quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.unexpected("a string")),
        };
        let Some(len) = self.0[1..].iter().position(|&byte| byte == quote) else {
            return Err(self.unexpected("a string that ends"));
        };
        let string = String::from_utf8_lossy(&self.0[1..=len]).into_owned();
        self.0 = &self.0[len + 2..];
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, Unexpected> {
        if self.accept("True") {
            return Ok(true);
        }
        if self.accept("False") { Ok(false) } else { Err(self.unexpected("`True` or `False`")) }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, Unexpected> {
        let mut numbers = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            numbers.push(self.number()?);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<u64, Unexpected> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.0[..digits]).ok().and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.unexpected("a number of 64 bits"))?;
        self.0 = &self.0[digits..];
        Ok(number)
    }

    fn unexpected(&mut self, expected: &str) -> Unexpected {
        match self.rest() {
            [] => (expected.into(), "the end of the header".into()),
            rest => (expected.into(), shorten(rest)),
        }
    }
}
