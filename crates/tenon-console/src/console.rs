//! The application: from a request to a page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tenon_compose::kind::{ContributionKind, OwnerKind};
use tenon_compose::render::{RenderTarget, RenderedSurface};
use tenon_compose::{ComposedEntry, EntryFields};
use tenon_contract::clock::Entropy;
use tenon_server::web::{DaemonAccess, PREFIX, WebApp, WebRequest};

use crate::action::Notice;
use crate::built_in::NOTICE_CLAIM;
use crate::composition_host::{ComposedConsole, CompositionHost};
use crate::form::Fields;
use crate::html::{self, DrawnParts};
use crate::live::LiveFeed;
use crate::pages::{self, PAGES, Page, PageContext, PageData, Slot};
use crate::problem_board::ProblemBoard;
use crate::request_checks::check_post;
use crate::respond::{self, respond};
use crate::sign_in::{Session, SignIn};

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const _: () = assert!(SCRIPT.len() < 30 * 1024, "the script stays small");
const ICON: &str = include_str!("../assets/icon.svg");

/// Marks a request of an open page that reads itself again.
const UPDATE_HEADER: &str = "x-tenon-live";

/// How many messages wait for the next page of a session.
const MAX_NOTICES: usize = 8;

/// See the module.
pub struct Console {
    access: DaemonAccess,
    sign_in: SignIn,
    host: Arc<CompositionHost>,
    problems: Arc<ProblemBoard>,
    live: Arc<LiveFeed>,
    /// What actions of each session did, until a page shows it.
    notices: Mutex<BTreeMap<String, Vec<Notice>>>,
}

/// A request for a page.
#[derive(Clone, Copy)]
struct Visit<'a> {
    session: &'a Session,
    is_update: bool,
}

impl Console {
    /// The console of one daemon.
    pub fn new(access: DaemonAccess) -> Arc<Self> {
        let workspace = access.workspace();
        let folder = workspace.dirs().state.join("console");
        let sign_in = SignIn::new(workspace.root(), &folder, workspace.clock().clone(), Entropy::system());
        let host = Arc::new(CompositionHost::new(access.clone()));
        let problems = Arc::new(ProblemBoard::new(access.clone()));
        let live = LiveFeed::new(access.clone(), Arc::clone(&host), Arc::clone(&problems));
        Arc::new(Self { access, sign_in, host, problems, live, notices: Mutex::default() })
    }

    async fn receive(self: Arc<Self>, request: WebRequest) -> Response {
        let WebRequest { head, body } = request;
        let path = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        let query = Fields::parse(head.uri.query().unwrap_or_default());
        if path.is_empty() {
            return respond::see_other("/console/");
        }
        if path == "/-/open" {
            return self.open(query.text("code").unwrap_or_default());
        }
        let Some(session) = self.sign_in.session(&head.headers) else {
            let text = "Not signed in. Run `tenon console` in the workspace for a new link.\n";
            return respond::text(StatusCode::UNAUTHORIZED, text);
        };
        match &head.method {
            &Method::GET | &Method::HEAD => {
                let visit = Visit { session: &session, is_update: head.headers.contains_key(UPDATE_HEADER) };
                self.get(path, query, visit).await
            }
            &Method::POST => {
                let form = Fields::parse(&String::from_utf8_lossy(&body));
                match check_post(&head.headers, &session, &form) {
                    Ok(()) => self.post(path, form, &session).await,
                    Err(refusal) => {
                        self.failure(StatusCode::FORBIDDEN, "Refused", &refusal.to_string(), &session).await
                    }
                }
            }
            _ => {
                let mut response =
                    respond::text(StatusCode::METHOD_NOT_ALLOWED, "The console takes GET and POST.\n");
                response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, POST"));
                response
            }
        }
    }

    fn open(&self, code: &str) -> Response {
        match self.sign_in.exchange(code).and_then(|cookie| cookie.parse().ok()) {
            None => {
                let text = "This link was used already or has expired. Run `tenon console` for a new one.\n";
                respond::text(StatusCode::UNAUTHORIZED, text)
            }
            Some(cookie) => {
                let mut response = respond::see_other("/console/");
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                response
            }
        }
    }

    async fn get(self: &Arc<Self>, path: &str, query: Fields, visit: Visit<'_>) -> Response {
        match path {
            "/-/style.css" => respond(StatusCode::OK, "text/css; charset=utf-8", STYLE),
            "/-/console.js" => respond(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
            "/-/icon.svg" => respond(StatusCode::OK, "image/svg+xml", ICON),
            "/-/events" => self.live.stream().unwrap_or_else(|| {
                respond::text(StatusCode::SERVICE_UNAVAILABLE, "The daemon is exiting.\n")
            }),
            _ => self.page(path, query, visit).await,
        }
    }

    async fn page(self: &Arc<Self>, path: &str, query: Fields, visit: Visit<'_>) -> Response {
        let composed = self.composed().await;
        let Some(route) = composed.route(path).cloned() else {
            let text = "There is no such page in this workspace.";
            return self.failure(StatusCode::NOT_FOUND, "Not found", text, visit.session).await;
        };
        let context = PageContext {
            access: self.access.clone(),
            problems: Arc::clone(&self.problems),
            composed: Arc::clone(&composed),
            query,
        };
        let page = built_in_page(&route);
        let data = match page {
            Some(page) => (page.load)(context).await,
            None => PageData::new(pages::module_props(context, &route).await),
        };
        let topics = page.map_or("modules activity problems servers work", |page| page.topics);
        self.draw(&composed, &route, data, topics, visit).await
    }

    /// Draws a page and the layout around it.
    async fn draw(
        self: &Arc<Self>,
        composed: &Arc<ComposedConsole>,
        route: &ComposedEntry,
        data: PageData,
        topics: &str,
        visit: Visit<'_>,
    ) -> Response {
        let is_module = route.owner.owner_kind == OwnerKind::Module;
        let PageData { mut props, slots, title } = data;
        // Modules have no actions of their own, so their templates do not see the token.
        if !is_module {
            props["form_token"] = Value::from(visit.session.form_token.as_str());
        }
        let title = title.or_else(|| route.title.clone()).unwrap_or_else(|| route.local_id().to_owned());
        let layout = self.layout(composed, Some(route), &title, topics);
        // An update of an open page leaves them to the page that the action leads to.
        let waiting = if visit.is_update { Vec::new() } else { self.take_notices(visit.session) };
        let (composed, key) = (Arc::clone(composed), Arc::clone(&route.key));
        let drawing = tokio::task::spawn_blocking(move || {
            let surface = composed.draw("route", &key, &props);
            let surface = match is_module {
                true => format!("<section class=\"module-page\">{}</section>", html::visible_html(&surface)),
                false => filled(&surface, &slots, &composed),
            };
            let notices = drawn_notices(waiting, &composed);
            html::render_layout(&layout, DrawnParts { surface, notices })
        });
        match drawing.await {
            Ok(Ok(text)) => respond::html(StatusCode::OK, text),
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot draw the layout of the console");
                respond::text(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be drawn.\n")
            }
            Err(_panic) => respond::text(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be drawn.\n"),
        }
    }

    async fn post(self: &Arc<Self>, path: &str, form: Fields, session: &Session) -> Response {
        let composed = self.composed().await;
        let page = composed.route(path).and_then(built_in_page);
        let Some(act) = page.and_then(|page| page.act) else {
            return self
                .failure(StatusCode::NOT_FOUND, "Not found", "This page has no such action.", session)
                .await;
        };
        let context = PageContext {
            access: self.access.clone(),
            problems: Arc::clone(&self.problems),
            composed,
            query: form,
        };
        let Some(_client) = self.access.control().enter() else {
            return respond::text(StatusCode::SERVICE_UNAVAILABLE, "The daemon is exiting.\n");
        };
        let outcome = act(context).await;
        self.live.touch_work();
        if outcome.stops {
            // The page has the address of the action, which is that of the page to show later.
            let topics = page.map_or("", |page| page.topics);
            let text = outcome.notice.text;
            let response = self.message(StatusCode::OK, ["Stopped", &text], topics, session).await;
            self.access.control().stop();
            return response;
        }
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let own = notices.entry(session.id.clone()).or_default();
        own.push(outcome.notice);
        if own.len() > MAX_NOTICES {
            own.remove(0);
        }
        respond::see_other(&outcome.next)
    }

    /// A page that says why there is no other.
    async fn failure(
        self: &Arc<Self>,
        status: StatusCode,
        title: &str,
        text: &str,
        session: &Session,
    ) -> Response {
        self.message(status, [title, text], "", session).await
    }

    /// A page with a title and one sentence.
    async fn message(
        self: &Arc<Self>,
        status: StatusCode,
        [title, text]: [&str; 2],
        topics: &str,
        session: &Session,
    ) -> Response {
        let composed = self.composed().await;
        let layout = self.layout(&composed, None, title, topics);
        let notices = drawn_notices(self.take_notices(session), &composed);
        let surface = format!("<p class=\"empty\">{}</p>", html::escaped(text));
        match html::render_layout(&layout, DrawnParts { surface, notices }) {
            Ok(text) => respond::html(status, text),
            Err(_) => respond::text(status, "The console cannot answer this request.\n"),
        }
    }

    fn layout(
        &self,
        composed: &ComposedConsole,
        route: Option<&ComposedEntry>,
        title: &str,
        topics: &str,
    ) -> Value {
        let items = composed.composition.entries(ContributionKind::SidebarItems).iter();
        let sidebar = items.filter_map(|item| {
            let EntryFields::SidebarItem { label, route_key } = &item.fields else { return None };
            let target = composed.composition.entry(route_key)?;
            let EntryFields::Route { effective_path, .. } = &target.fields else { return None };
            Some(json!({
                "label": label, "href": format!("{PREFIX}{effective_path}"), "id": item.local_id(),
                "active": route.is_some_and(|route| route.key == target.key),
                "module": item.owner.owner_kind == OwnerKind::Module,
            }))
        });
        let workspace = self.access.workspace();
        let root = workspace.root();
        json!({
            "title": title, "sidebar": sidebar.collect::<Vec<_>>(), "root": root,
            "name": root.file_name().unwrap_or("workspace"), "trust": workspace.trust().name(),
            "version": env!("CARGO_PKG_VERSION"), "topics": topics,
        })
    }

    fn take_notices(&self, session: &Session) -> Vec<Notice> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.remove(&session.id).unwrap_or_default()
    }

    async fn composed(&self) -> Arc<ComposedConsole> {
        let host = Arc::clone(&self.host);
        match tokio::task::spawn_blocking(move || host.current()).await {
            Ok(composed) => composed,
            Err(_panic) => self.host.current(),
        }
    }
}

impl ComposedConsole {
    /// Draws a surface. A fallback is followed by its diagnostic.
    pub(crate) fn draw(&self, kind: &str, key: &str, props: &Value) -> String {
        let RenderedSurface { html, diagnostic } = self.runtime.render(RenderTarget { kind, key }, props);
        let Some(diagnostic) = diagnostic else { return html };
        let note = format!("{} · {} · {}", diagnostic.code, key, diagnostic.message);
        self.note_failure(key, diagnostic);
        format!("{html}<p class=\"surface-note\">{}</p>", html::escaped(&note))
    }
}

fn drawn_notices(notices: Vec<Notice>, composed: &ComposedConsole) -> String {
    let claimed = composed.renderer(ContributionKind::MessageRenderers, NOTICE_CLAIM);
    let draw = |notice| {
        claimed.map(|entry| composed.draw("message-renderer", &entry.key, &json!({"notice": notice})))
    };
    notices.into_iter().filter_map(draw).collect()
}

fn built_in_page(route: &ComposedEntry) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.owner == route.owner.owner_id && page.id == route.local_id())
}

/// Puts the surfaces of slots where the page has their marks. Only pages of the console have slots.
fn filled(surface: &str, slots: &[Slot], composed: &ComposedConsole) -> String {
    let mut parts = surface.split("<!--slot ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((number, rest)) = part.split_once("-->") else { continue };
        if let Some(slot) = number.parse::<usize>().ok().and_then(|number| slots.get(number)) {
            out.push_str(&html::visible_html(&composed.draw(slot.kind, &slot.key, &slot.props)));
        }
        out.push_str(rest);
    }
    out
}

impl WebApp for Console {
    fn is_signed_in(&self, head: &Parts) -> bool {
        self.sign_in.session(&head.headers).is_some()
    }

    fn answer(self: Arc<Self>, request: WebRequest) -> BoxFuture<'static, Response> {
        self.receive(request).boxed()
    }

    fn sign_in_path(&self) -> String {
        self.sign_in.link_path()
    }

    fn has_sessions(&self) -> bool {
        self.sign_in.has_sessions()
    }
}
