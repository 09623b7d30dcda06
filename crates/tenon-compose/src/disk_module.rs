//! Modules on disk: a folder with a `module.json`, and with a `pack.json` and templates if the module draws anything.
//!
//! The only file of this crate that reads files, besides the templates it hands out. Nothing outside the module's
//! folder is ever opened, links included.

use std::sync::Arc;

use camino::Utf8Path;
use serde_json::{Map, Value, json};
use tenon_contract::root::{GateError, ReadError, RootError, RootGate};

use crate::composition::ModuleRuntime;
use crate::json::{Json, ParseError};
use crate::render::{LoadKind, PackError, ProviderSource, RenderPack, TemplateFile};

/// The declaration in a module's folder.
pub const DECLARATION: &str = "module.json";

/// The list of providers in a module's folder.
pub const PACK: &str = "pack.json";

/// The largest of either, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Why a folder is no module.
#[derive(Debug, thiserror::Error)]
pub enum DiskModuleError {
    #[error("the module's folder cannot be used")]
    Folder(#[from] RootError),
    #[error("`{file}` cannot be found")]
    Missing { file: &'static str, source: GateError },
    #[error("`{file}` cannot be read")]
    Unreadable { file: &'static str, source: ReadError },
    #[error("`{file}` is not valid at {}:{}: {source}", source.line, source.column)]
    Invalid { file: &'static str, source: ParseError },
    #[error("`{DECLARATION}` is not an object")]
    NotAnObject,
    #[error("`{PACK}` is not a pack: {0}")]
    NotAPack(#[from] PackError),
    #[error("`{PACK}` belongs to `{pack}`, the module is `{module}`")]
    ForeignPack { pack: String, module: String },
}

/// A module as its folder has it: what it declares, and what draws it.
pub struct DiskModule {
    declaration: Map<String, Value>,
    pub pack: Option<RenderPack>,
}

impl DiskModule {
    /// Reads a module's folder.
    ///
    /// # Errors
    /// When the folder or one of its two files cannot be read, or the pack is not the module's own.
    pub fn read(folder: &Utf8Path) -> Result<Self, DiskModuleError> {
        let gate = RootGate::new([folder])?;
        let Value::Object(declaration) = read(&gate, DECLARATION)? else {
            return Err(DiskModuleError::NotAnObject);
        };
        let pack = match read(&gate, PACK) {
            Ok(value) => Some(pack(&gate, &value, &declaration)?),
            Err(DiskModuleError::Missing { source: GateError::Missing, .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { declaration, pack })
    }

    /// The module as the composer wants it: its declaration, with the runtime status that the host resolved. A status
    /// in the file itself has no say.
    #[must_use]
    pub fn instance(&self, runtime: &ModuleRuntime) -> Value {
        let mut instance = self.declaration.clone();
        instance.insert("runtime".to_owned(), json!(runtime));
        Value::Object(instance)
    }
}

fn read(gate: &RootGate, file: &'static str) -> Result<Value, DiskModuleError> {
    let path = gate.admit_path(file).map_err(|source| DiskModuleError::Missing { file, source })?;
    let bytes = gate.read(&path, MAX_FILE).map_err(|source| DiskModuleError::Unreadable { file, source })?;
    let json = Json::parse(&bytes).map_err(|source| DiskModuleError::Invalid { file, source })?;
    Ok(json.to_value())
}

fn pack(
    gate: &RootGate,
    value: &Value,
    declaration: &Map<String, Value>,
) -> Result<RenderPack, DiskModuleError> {
    let pack = RenderPack::read(value, &|kind, entry| match (kind, entry.get("template")) {
        (LoadKind::Lazy, Some(Value::String(path))) => {
            Some(ProviderSource::Lazy(Arc::new(TemplateFile::new(gate.clone(), path))))
        }
        _ => None,
    })?;
    let module = declaration.get("instanceId").and_then(Value::as_str).unwrap_or_default();
    if pack.owner_id != module {
        return Err(DiskModuleError::ForeignPack { pack: pack.owner_id, module: module.to_owned() });
    }
    Ok(pack)
}
