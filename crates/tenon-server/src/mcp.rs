//! MCP over `rmcp`: the handler that serves a set of surfaces.
//!
//! `rmcp` brings the model, version negotiation and the result shapes of both revisions. Framing,
//! lifecycle, cancellation and progress are implemented here (`envelope`, `session`, `progress`), because
//! `rmcp` accepts more than our contract allows. See docs/decisions/0201-rmcp-behind-a-strict-edge.md.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::activity::{ActivityLog, ClientConnection};
use crate::surface::{Caller, ClientNumber, ContentMode, InputEnded, SurfaceSet, ToolAnswer};
use crate::surfaces::code::CodeSurface;
use progress::ProgressReporter;
use revision::Handshake;

pub(crate) mod envelope;
pub(crate) mod json_writer;
mod known_clients;
pub(crate) mod progress;
pub(crate) mod request_id;
pub(crate) mod revision;
pub(crate) mod session;
pub mod stream;

/// The supported methods. One of them that arrives as a custom request has malformed parameters.
const SERVED: [&str; 5] = ["initialize", "ping", "server/discover", "tools/call", "tools/list"];

/// Serves one set of surfaces to any number of sessions.
#[derive(Clone)]
pub struct Handler {
    surfaces: Arc<SurfaceSet>,
    identity: Identity,
    /// The client, if this handler serves one alone.
    connection: Option<Arc<ClientConnection>>,
}

/// The name and version that the server reports; aliases of the binary report their own.
#[derive(Debug, Clone)]
pub struct Identity {
    pub name: Cow<'static, str>,
    pub version: Cow<'static, str>,
}

impl Default for Identity {
    fn default() -> Self {
        Self { name: "tenon".into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

impl Handler {
    pub fn new(surfaces: SurfaceSet) -> Self {
        Self::with_identity(surfaces, Identity::default())
    }

    pub fn with_identity(surfaces: SurfaceSet, identity: Identity) -> Self {
        Self { surfaces: Arc::new(surfaces), identity, connection: None }
    }

    /// The same handler for one client, which is listed as connected until the last copy of the handler is dropped.
    pub(crate) fn connected(self, activity: Option<&Arc<ActivityLog>>) -> Self {
        Self { connection: activity.map(|activity| Arc::new(activity.connect())), ..self }
    }

    /// Whether the sessions have the surface.
    pub(crate) fn serves(&self, surface: &str) -> bool {
        self.surfaces.has(surface)
    }

    /// The `code` surface alone keeps to its contract; every other set is for any client.
    pub(crate) fn handshake(&self) -> Handshake {
        if self.surfaces.is_only(CodeSurface::NAME) { Handshake::Contract } else { Handshake::Compatible }
    }
}

impl Handler {
    /// Whether the model of the client sees only the text of a result.
    fn wants_text(&self, context: &RequestContext<RoleServer>, revision: &ProtocolVersion) -> bool {
        let by_content = match self.surfaces.content() {
            ContentMode::Text => true,
            ContentMode::Structured => false,
            ContentMode::Auto => {
                context.client_info().is_some_and(|client| known_clients::sees_only_text(&client.name))
            }
        };
        by_content || !revision::has_structured_content(revision)
    }
}

/// The revision of a request. One without a handshake or metadata gets the contract's.
fn revision_of(context: &RequestContext<RoleServer>) -> ProtocolVersion {
    context.protocol_version().unwrap_or(ProtocolVersion::V_2025_11_25)
}

/// Does not repeat the method: it is client input.
pub(crate) fn method_not_found() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "method not found", None)
}

fn to_wire(answer: ToolAnswer) -> CallToolResult {
    let mut result = CallToolResult::success(answer.content);
    result.structured_content = answer.structured;
    result.is_error = Some(answer.is_error);
    result
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(self.identity.name.clone(), self.identity.version.clone()))
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        match self.surfaces.instructions() {
            Some(instructions) => info.with_instructions(instructions),
            None => info,
        }
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.handshake().revisions())
    }

    /// Stores the negotiated revision, not the requested one: result shapes depend on it.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        request.protocol_version = result.protocol_version.clone();
        if let Some(connection) = &self.connection {
            connection.name(&request.client_info.name, &request.client_info.version);
        }
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params("tools/list has one page and takes no cursor", None));
        }
        let revision = revision_of(&context);
        let mut tools = self.surfaces.tools();
        tools.iter_mut().for_each(|tool| revision::fit_tool(tool, &revision));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let progress = context.extensions.get::<ProgressReporter>().cloned().unwrap_or_default();
        let arguments = request.arguments.unwrap_or_default();
        let input_ended = context.extensions.get::<InputEnded>().cloned().unwrap_or_default();
        let client = context.extensions.get::<ClientNumber>().copied().unwrap_or_default();
        let revision = revision_of(&context);
        let text = self.wants_text(&context, &revision);
        let name = context.client_info().map(|client| client.name.clone());
        if let Some(connection) = &self.connection {
            connection.count_call();
        }
        let caller = Caller { client, name, cancel: context.ct, input_ended, progress, text };
        let outcome = self.surfaces.call(&request.name, arguments, caller).await;
        outcome.map(|answer| {
            let mut result = to_wire(answer);
            revision::fit_result(&mut result, &revision);
            result.into()
        })
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            let name = request.params.as_ref().and_then(|params| params.get("name")?.as_str());
            return Err(self.surfaces.malformed_call(name));
        }
        if SERVED.contains(&request.method.as_str()) {
            let message = format!("malformed parameters of {}", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(method_not_found())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(method_not_found())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(method_not_found())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(method_not_found())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(method_not_found())
    }
}
