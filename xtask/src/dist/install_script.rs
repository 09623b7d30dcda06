//! The install script: `packaging/install.sh` with the version, the address of the files and the glibc that each binary
//! needs filled in.

use std::fs;

use super::{Binary, VERSION};
use crate::shell::{Error, repository};

pub(super) fn text(binaries: &[Binary], base_url: Option<&str>) -> Result<String, Error> {
    if let Some(url) = base_url.filter(|url| url.contains(['\'', '\n'])) {
        return Err(Error::new(format!("invalid base URL `{url}`")).hint("remove quotes and line breaks"));
    }
    let template = fs::read_to_string(repository().join("packaging/install.sh"))?;
    let needed = |processor: &str| {
        let found =
            binaries.iter().find(|one| one.target.is_linux() && one.target.triple.starts_with(processor));
        found.and_then(|binary| binary.glibc).map(|version| version.to_string()).unwrap_or_default()
    };
    let values = [
        ("@VERSION@", VERSION.to_owned()),
        ("@BASE_URL@", base_url.unwrap_or_default().trim_end_matches('/').to_owned()),
        ("@GLIBC_X86_64@", needed("x86_64")),
        ("@GLIBC_AARCH64@", needed("aarch64")),
    ];
    let mut text = template;
    for (mark, value) in values {
        if !text.contains(mark) {
            return Err(Error::new(format!("packaging/install.sh has no {mark}")));
        }
        text = text.replace(mark, &value);
    }
    Ok(text)
}
