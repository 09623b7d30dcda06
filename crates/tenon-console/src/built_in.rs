//! The built-in owners: one per page, declared as modules are, with Rust providers that are ready at once.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use tenon_compose::render::{
    ProviderError, ProviderHandle, ProviderSource, Render, RenderPack, RenderProvider,
};

use crate::html;
use crate::pages::PAGES;

const PACKAGE: &str = "@tenon/console";
const VERSION: &str = "0.1";

/// A renderer of a built-in owner that is not a page.
struct Renderer {
    owner: &'static str,
    collection: &'static str,
    kind: &'static str,
    id: &'static str,
    claim: &'static str,
    template: &'static str,
}

const fn tool(id: &'static str, claim: &'static str) -> Renderer {
    Renderer {
        owner: "builtin-tenon-code",
        collection: "toolRenderers",
        kind: "tool-renderer",
        id,
        claim,
        template: "call_code.html",
    }
}

static RENDERERS: &[Renderer] = &[
    Renderer {
        owner: "builtin-tenon-activity",
        collection: "activityRenderers",
        kind: "activity-renderer",
        id: "tool-call",
        claim: CALL_CLAIM,
        template: "call.html",
    },
    Renderer {
        owner: "builtin-tenon-memory",
        collection: "messageRenderers",
        kind: "message-renderer",
        id: "note",
        claim: NOTE_CLAIM,
        template: "note.html",
    },
    Renderer {
        owner: "builtin-tenon-overview",
        collection: "messageRenderers",
        kind: "message-renderer",
        id: "notice",
        claim: NOTICE_CLAIM,
        template: "message.html",
    },
    tool("find", "tool:find"),
    tool("references", "tool:references"),
    tool("hierarchy", "tool:hierarchy"),
    tool("outline", "tool:outline"),
    tool("search", "tool:search"),
];

/// Draws calls of tools without a renderer of their own.
pub(crate) const CALL_CLAIM: &str = "activity:tool-call";
/// Draws notes of the memory.
pub(crate) const NOTE_CLAIM: &str = "message:note";
/// Draws what an action did.
pub(crate) const NOTICE_CLAIM: &str = "message:notice";

fn handle(kind: &str, id: &str) -> Value {
    json!({"renderHandleVersion": VERSION, "kind": kind, "id": id})
}

/// The declarations of all built-in owners.
pub(crate) fn declarations() -> &'static Value {
    static DECLARATIONS: LazyLock<Value> = LazyLock::new(|| {
        let owners = PAGES.iter().enumerate().map(|(order, page)| {
            let key = format!("{}:routes/{}", page.owner, page.id);
            let mut contributions = json!({
                "routes": [{"id": page.id, "path": page.path, "title": page.title, "order": order,
                    "renderHandle": handle("route", page.id)}],
                "sidebarItems": [{"id": page.id, "label": page.title, "routeKey": key, "order": order}],
            });
            for renderer in RENDERERS.iter().filter(|renderer| renderer.owner == page.owner) {
                let entry = json!({"id": renderer.id, "claim": renderer.claim,
                    "renderHandle": handle(renderer.kind, renderer.id)});
                match &mut contributions[renderer.collection] {
                    Value::Array(list) => list.push(entry),
                    other => *other = json!([entry]),
                }
            }
            json!({"ownerId": page.owner, "packageId": PACKAGE, "packageVersion": env!("CARGO_PKG_VERSION"),
                "contributions": contributions})
        });
        owners.collect()
    });
    &DECLARATIONS
}

/// Draws a surface with a template of the console.
struct ConsoleTemplate(&'static str);

impl Render for ConsoleTemplate {
    fn render(&self, props: &Value) -> Result<String, ProviderError> {
        Ok(html::render(self.0, props)?)
    }
}

/// The providers of all built-in owners.
pub(crate) fn packs() -> Vec<RenderPack> {
    let provider = |kind: &str, id: &str, template: &'static str| RenderProvider {
        handle: ProviderHandle { version: VERSION.to_owned(), kind: kind.to_owned(), id: id.to_owned() },
        source: ProviderSource::Eager(Arc::new(ConsoleTemplate(template))),
        module_id: None,
        trust_tier: None,
    };
    let pack = |page: &crate::pages::Page| {
        let own = RENDERERS.iter().filter(|renderer| renderer.owner == page.owner);
        let own = own.map(|renderer| provider(renderer.kind, renderer.id, renderer.template));
        RenderPack {
            schema_version: VERSION.to_owned(),
            owner_id: page.owner.to_owned(),
            package_id: PACKAGE.to_owned(),
            package_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            providers: std::iter::once(provider("route", page.id, page.template)).chain(own).collect(),
        }
    };
    PAGES.iter().map(pack).collect()
}
