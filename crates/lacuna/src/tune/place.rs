//! Where choices are kept if nobody says where.
use std::ffi::OsString;
use std::path::PathBuf;

use super::format::FORMAT;

/// The file in the user's cache folder, by these environment variables. As the XDG base directory specification asks, a
/// relative path counts as none. Each format has a file of its own, so that versions of the library do not meet.
pub(super) fn default_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(caches.join(format!("lacuna/tune-{FORMAT}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let find = |name: &str| variables.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into());
        default_file(find)
    }

    #[test]
    fn the_cache_folder_comes_before_home() {
        let both = [("XDG_CACHE_HOME", "/caches"), ("HOME", "/home/me")];
        assert_eq!(place(&both), Some("/caches/lacuna/tune-2.json".into()));
        assert_eq!(place(&both[1..]), Some("/home/me/.cache/lacuna/tune-2.json".into()));
    }

    #[test]
    fn empty_and_relative_paths_count_as_none() {
        assert_eq!(place(&[]), None);
        assert_eq!(place(&[("XDG_CACHE_HOME", ""), ("HOME", "me")]), None);
        assert_eq!(
            place(&[("XDG_CACHE_HOME", "caches"), ("HOME", "/me")]),
            Some("/me/.cache/lacuna/tune-2.json".into())
        );
    }
}
