//! A module on disk: its declaration is what the file says, its pack is its own, its templates stay in its folder.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::composition::ModuleRuntime;
use crate::disk_module::{DECLARATION, DiskModule, PACK};
use crate::kind::RuntimeStatus;
use crate::render::ProviderSource;
use crate::{CompositionInput, compose};

/// In a file beside the module.
const SECRET: &str = "text outside of the module";

struct Folder {
    module: Utf8PathBuf,
    _folder: tempfile::TempDir,
}

thread_local! {
    static FOLDER: Folder = Folder::new();
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = Utf8Path::from_path(folder.path()).expect("temporary folders have UTF-8 names");
        let module = base.join("module");
        fs::create_dir(&module).expect("a folder");
        fs::write(module.join("page.html"), "{% include props %}").expect("a file");
        fs::write(base.join("secret.html"), SECRET).expect("a file");
        Self { module, _folder: folder }
    }

    fn check(&self, declaration: &[u8], pack: Option<&[u8]>) {
        let pack_file = self.module.join(PACK);
        fs::write(self.module.join(DECLARATION), declaration).expect("the folder can be written to");
        match pack {
            Some(pack) => fs::write(pack_file, pack).expect("the folder can be written to"),
            // It is there if the input before had one.
            None => drop(fs::remove_file(pack_file)),
        }
        let Ok(module) = DiskModule::read(&self.module) else { return };
        let runtime = ModuleRuntime { status: RuntimeStatus::Ready, reason: None };
        let instance = module.instance(&runtime);
        let mut expected: Value =
            serde_json::from_slice(declaration).expect("an accepted declaration is JSON");
        expected["runtime"] = json!(runtime);
        assert_eq!(instance, expected);
        let input = json!({ "compositionSchemaVersion": "0.1", "modules": [instance] });
        let _ = compose(&CompositionInput::from_value(&input).expect("a file nests less than the limit"));
        let Some(pack) = module.pack else { return };
        assert_eq!(Some(pack.owner_id.as_str()), expected["instanceId"].as_str());
        for provider in &pack.providers {
            let ProviderSource::Lazy(template) = &provider.source else { continue };
            let Ok(page) = template.load() else { continue };
            for props in ["../secret.html", "/secret.html", "page.html"] {
                let shown = page.render(&json!({ "props": props })).unwrap_or_default();
                assert!(!shown.contains(SECRET));
            }
        }
    }
}

/// `data` is `module.json` and, after a NUL byte, `pack.json`.
pub fn check(data: &[u8]) {
    let mut files = data.splitn(2, |byte| *byte == 0);
    let declaration = files.next().unwrap_or_default();
    FOLDER.with(|folder| folder.check(declaration, files.next()));
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("module_files", super::check);
    }
}
