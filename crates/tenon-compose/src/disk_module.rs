//! A module on disk: a folder with `module.json`, plus `pack.json` and templates when the module renders anything.
//!
//! Only this file and the templates it creates read files. They never open anything outside the module's folder,
//! symbolic links included.

use std::sync::Arc;

use camino::Utf8Path;
use serde_json::{Map, Value, json};
use tenon_contract::root::{GateError, ReadError, RootError, RootGate};

use crate::composition::ModuleRuntime;
use crate::json::{Json, ParseError};
use crate::render::{LoadKind, PackError, ProviderSource, RenderPack, TemplateFile};

/// The file that holds a module's declaration.
pub const DECLARATION: &str = "module.json";

/// The file that lists a module's render providers.
pub const PACK: &str = "pack.json";

/// The maximum size of either file, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Why a folder cannot be read as a module.
#[derive(Debug, thiserror::Error)]
pub enum DiskModuleError {
    #[error("cannot use the module's folder")]
    Folder(#[from] RootError),
    #[error("cannot find `{file}`")]
    Missing { file: &'static str, source: GateError },
    #[error("cannot read `{file}`")]
    Unreadable { file: &'static str, source: ReadError },
    #[error("`{file}` is invalid at {}:{}: {source}", source.line, source.column)]
    Invalid { file: &'static str, source: ParseError },
    #[error("`{DECLARATION}` is not an object")]
    NotAnObject,
    #[error("`{PACK}` is invalid: {0}")]
    NotAPack(#[from] PackError),
    #[error("`{PACK}` belongs to `{pack}`, the module is `{module}`")]
    ForeignPack { pack: String, module: String },
}

/// A module read from its folder: the declaration, and the render pack if there is one.
pub struct DiskModule {
    declaration: Map<String, Value>,
    pub pack: Option<RenderPack>,
}

impl DiskModule {
    /// Reads a module's folder.
    ///
    /// # Errors
    /// When the folder or either file cannot be read, or the pack names another owner.
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

    /// The composer's input for this module: the declaration with the runtime status that the host resolved. A
    /// `runtime` in the file is overwritten.
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
