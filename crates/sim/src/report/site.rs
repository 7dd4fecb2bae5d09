//! Source lines that call the device, numbered for one launch.
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Mutex;

use crate::report::finding::Source;
use crate::report::operation::Operation;

/// Where in the source, as `#[track_caller]` gives it.
pub(crate) type Caller = &'static Location<'static>;

/// Number of a source line and its operation in one launch.
pub(crate) type SiteId = u32;

/// The numbering, shared by all blocks of a launch.
#[derive(Debug, Default)]
pub(crate) struct Sites(Mutex<Numbering>);

#[derive(Debug, Default)]
struct Numbering {
    ids: HashMap<(&'static str, u32, u32, Operation), SiteId>,
    sites: Vec<(Source, Operation)>,
}

impl Sites {
    fn number(&self, caller: Caller, operation: Operation) -> SiteId {
        let mut numbering = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Numbering { ids, sites } = &mut *numbering;
        *ids.entry((caller.file(), caller.line(), caller.column(), operation)).or_insert_with(|| {
            sites.push((Source::from(caller), operation));
            sites.len() as SiteId - 1
        })
    }

    /// The line and operation of a number that this launch gave out.
    pub(crate) fn get(&self, site: SiteId) -> (Source, Operation) {
        let numbering = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        numbering.sites[site as usize].clone()
    }
}

const CACHED: usize = 256;

/// One worker's short way to the numbers it has met.
pub(crate) struct SiteCache<'l> {
    sites: &'l Sites,
    entries: Box<[Option<(Caller, Operation, SiteId)>; CACHED]>,
}

impl<'l> SiteCache<'l> {
    pub(crate) fn new(sites: &'l Sites) -> Self {
        Self { sites, entries: Box::new([None; CACHED]) }
    }

    /// The number of a line.
    #[inline]
    pub(crate) fn of(&mut self, caller: Caller, operation: Operation) -> SiteId {
        let address = std::ptr::from_ref(caller).addr();
        let entry = &mut self.entries[(address >> 3 ^ address >> 11 ^ operation as usize) % CACHED];
        match *entry {
            Some((known, of, site)) if std::ptr::eq(known, caller) && of == operation => site,
            _ => {
                let site = self.sites.number(caller, operation);
                *entry = Some((caller, operation, site));
                site
            }
        }
    }
}
