//! The addresses of files: `file:///home/a/b.yaml`.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use lsp_types::Uri;

use memgate_workbench::report::percent_encoded;

/// The path of a file; `None` for what is not a file of this machine.
pub(crate) fn path(uri: &Uri) -> Option<PathBuf> {
    let is_file = uri.scheme().is_some_and(|scheme| scheme.as_str().eq_ignore_ascii_case("file"));
    let decoded = uri.path().as_estr().decode().into_string().ok().filter(|_| is_file)?;
    // `/C:/a` on Windows.
    let drive = decoded.strip_prefix('/').filter(|rest| cfg!(windows) && rest.get(1..2) == Some(":"));
    let path = PathBuf::from(drive.unwrap_or(&decoded));
    path.is_absolute().then_some(path)
}

/// The address of a file; `None` for a relative path, and for one that is not Unicode text.
pub(crate) fn of_path(path: &Path) -> Option<Uri> {
    let text = path.is_absolute().then(|| path.to_str())??;
    let text = if cfg!(windows) { format!("/{}", text.replace('\\', "/")) } else { text.to_owned() };
    Uri::from_str(&format!("file://{}", percent_encoded(&text, "/-._~"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_become_addresses_and_back() {
        for (text, address) in [
            ("/a/b.yaml", "file:///a/b.yaml"),
            ("/a b/\u{e4}#?%.yaml", "file:///a%20b/%C3%A4%23%3F%25.yaml"),
            ("/", "file:///"),
        ] {
            let uri = of_path(Path::new(text)).expect("an address");
            assert_eq!((uri.as_str(), path(&uri)), (address, Some(PathBuf::from(text))));
        }
        assert_eq!(of_path(Path::new("a")), None);
        for other in ["untitled:Untitled-1", "https://a/b", "file:a", "git:/a/b.yaml", "file:///a%FFb"] {
            assert_eq!(path(&Uri::from_str(other).expect("an address")), None, "{other}");
        }
    }
}
