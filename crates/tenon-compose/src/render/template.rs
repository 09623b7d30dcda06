//! Templates: lazy providers that are files in a module's folder.
//!
//! Template output is always escaped for HTML; a template cannot switch that off. A template sees only the props that
//! the host passes, includes only files of the module's folder, and is limited to [`FUEL`] instructions and
//! [`MAX_SURFACE`] bytes of output. Memory is not limited: a template that doubles a string forty times exhausts it, so
//! the host admits only modules that the user installed.

use std::io::{self, Write};
use std::sync::Arc;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, HtmlEscape};
use serde_json::Value;
use tenon_contract::root::RootGate;

use super::MAX_SURFACE;
use super::pack::{Load, ProviderError, Render};

/// How many instructions a template may run: enough for a table of some ten thousand rows.
const FUEL: u64 = 1_000_000;

/// The maximum size of a template file, in bytes.
const MAX_TEMPLATE: u64 = 1024 * 1024;

/// A template file in a module's folder.
pub struct TemplateFile {
    folder: RootGate,
    path: String,
}

impl TemplateFile {
    /// The template at `path`, relative to `folder`.
    #[must_use]
    pub fn new(folder: RootGate, path: &str) -> Self {
        Self { folder, path: path.to_owned() }
    }
}

impl Load for TemplateFile {
    fn load(&self) -> Result<Arc<dyn Render>, ProviderError> {
        let source = read(&self.folder, &self.path)?;
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_formatter(|out, state, value| match state.auto_escape() {
            AutoEscape::Html => minijinja::escape_formatter(out, state, value),
            // Escapes inside `{% autoescape false %}` too.
            _ => write!(out, "{}", HtmlEscape(&value.to_string())).map_err(minijinja::Error::from),
        });
        environment.remove_filter("safe");
        let folder = self.folder.clone();
        environment.set_loader(move |name| match read(&folder, name) {
            Ok(source) => Ok(Some(source)),
            Err(error) => {
                Err(minijinja::Error::new(ErrorKind::TemplateNotFound, "not found in the module's folder")
                    .with_source(*error))
            }
        });
        environment.add_template_owned(self.path.clone(), source)?;
        Ok(Arc::new(Template { environment, path: self.path.clone() }))
    }
}

fn read(folder: &RootGate, path: &str) -> Result<String, Box<io::Error>> {
    let outside = |error| Box::new(io::Error::new(io::ErrorKind::PermissionDenied, error));
    let admitted = folder.admit_path(path).map_err(outside)?;
    folder.read_to_string(&admitted, MAX_TEMPLATE).map_err(|error| Box::new(io::Error::other(error)))
}

struct Template {
    environment: Environment<'static>,
    path: String,
}

impl Render for Template {
    fn render(&self, props: &Value) -> Result<String, ProviderError> {
        let template = self.environment.get_template(&self.path)?;
        let mut output = BoundedOutput(Vec::new());
        template.render_captured_to(Serde(props), &mut output)?;
        Ok(String::from_utf8(output.0)?)
    }
}

/// Output buffer that fails beyond [`MAX_SURFACE`] bytes.
struct BoundedOutput(Vec<u8>);

impl Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_SURFACE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
