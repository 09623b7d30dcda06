//! The parameters of `initialize`: our identity, our capabilities, and the project root.

use gen_lsp_types::{
    CallHierarchyClientCapabilities, ClientCapabilities, ClientCodeActionKindOptions,
    ClientCodeActionLiteralOptions, ClientCodeActionResolveOptions, ClientInfo, CodeActionClientCapabilities,
    CodeActionKind, DefinitionClientCapabilities, DiagnosticClientCapabilities,
    DiagnosticWorkspaceClientCapabilities, DiagnosticsCapabilities, DidChangeConfigurationClientCapabilities,
    DidChangeWatchedFilesClientCapabilities, DocumentFormattingClientCapabilities,
    DocumentSymbolClientCapabilities, FailureHandlingKind, GeneralClientCapabilities,
    HoverClientCapabilities, ImplementationClientCapabilities, InitializeParams, MarkupKind,
    PositionEncodingKind, PublishDiagnosticsClientCapabilities, ReferenceClientCapabilities,
    RenameClientCapabilities, TextDocumentClientCapabilities, TextDocumentSyncClientCapabilities, Uri,
    WindowClientCapabilities, WorkspaceClientCapabilities, WorkspaceEditClientCapabilities, WorkspaceFolder,
    WorkspaceFoldersInitializeParams, WorkspaceSymbolClientCapabilities,
};
use serde_json::{Value, json};

/// We send no progress token, here or in any request, so all progress is about the server's own work.
///
/// A confined server cannot signal us, not even to see whether we live, and would exit: it does not get our process id.
pub(crate) fn initialize_params(
    options: Option<Value>,
    root: &str,
    root_uri: &str,
    is_confined: bool,
    utf16_columns: bool,
) -> InitializeParams {
    let folder = WorkspaceFolder {
        uri: Uri::from(root_uri),
        name: root.rsplit('/').next().unwrap_or(root).to_owned(),
    };
    #[expect(deprecated, reason = "some servers still read nothing but `rootUri`")]
    InitializeParams {
        process_id: i32::try_from(std::process::id()).ok().filter(|_| !is_confined),
        client_info: Some(ClientInfo {
            name: "tenon".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        root_uri: Some(Uri::from(root_uri)),
        capabilities: capabilities(utf16_columns),
        initialization_options: options,
        workspace_folders_initialize_params: WorkspaceFoldersInitializeParams {
            workspace_folders: Some(vec![folder].into()),
        },
        ..InitializeParams::default()
    }
}

/// Only what we handle: edits that we asked for and that only change texts, no commands, no dialogs.
fn capabilities(utf16_columns: bool) -> ClientCapabilities {
    let yes = Some(true);
    let encodings = match utf16_columns {
        true => vec![PositionEncodingKind::UTF16],
        false => vec![PositionEncodingKind::UTF8, PositionEncodingKind::UTF16],
    };
    ClientCapabilities {
        workspace: Some(WorkspaceClientCapabilities {
            apply_edit: Some(false),
            workspace_edit: Some(WorkspaceEditClientCapabilities {
                document_changes: yes,
                resource_operations: Some(Vec::new()),
                failure_handling: Some(FailureHandlingKind::Abort),
                ..Default::default()
            }),
            configuration: yes,
            workspace_folders: yes,
            did_change_configuration: Some(DidChangeConfigurationClientCapabilities {
                dynamic_registration: yes,
            }),
            did_change_watched_files: Some(DidChangeWatchedFilesClientCapabilities {
                dynamic_registration: yes,
                relative_pattern_support: yes,
            }),
            symbol: Some(WorkspaceSymbolClientCapabilities {
                dynamic_registration: yes,
                ..Default::default()
            }),
            diagnostics: Some(DiagnosticWorkspaceClientCapabilities { refresh_support: yes }),
            ..Default::default()
        }),
        text_document: Some(TextDocumentClientCapabilities {
            synchronization: Some(TextDocumentSyncClientCapabilities {
                dynamic_registration: yes,
                did_save: yes,
                ..Default::default()
            }),
            hover: Some(HoverClientCapabilities {
                dynamic_registration: yes,
                content_format: Some(vec![MarkupKind::Markdown, MarkupKind::PlainText]),
            }),
            definition: Some(DefinitionClientCapabilities { dynamic_registration: yes, link_support: yes }),
            implementation: Some(ImplementationClientCapabilities {
                dynamic_registration: yes,
                link_support: yes,
            }),
            references: Some(ReferenceClientCapabilities { dynamic_registration: yes }),
            document_symbol: Some(DocumentSymbolClientCapabilities {
                dynamic_registration: yes,
                hierarchical_document_symbol_support: yes,
                ..Default::default()
            }),
            call_hierarchy: Some(CallHierarchyClientCapabilities { dynamic_registration: yes }),
            rename: Some(RenameClientCapabilities {
                dynamic_registration: yes,
                prepare_support: yes,
                ..Default::default()
            }),
            code_action: Some(CodeActionClientCapabilities {
                dynamic_registration: yes,
                code_action_literal_support: Some(ClientCodeActionLiteralOptions {
                    code_action_kind: ClientCodeActionKindOptions {
                        value_set: vec![CodeActionKind::QuickFix, CodeActionKind::SourceOrganizeImports],
                    },
                }),
                is_preferred_support: yes,
                disabled_support: yes,
                data_support: yes,
                resolve_support: Some(ClientCodeActionResolveOptions { properties: vec!["edit".to_owned()] }),
                ..Default::default()
            }),
            formatting: Some(DocumentFormattingClientCapabilities { dynamic_registration: yes }),
            publish_diagnostics: Some(PublishDiagnosticsClientCapabilities {
                version_support: yes,
                diagnostics_capabilities: DiagnosticsCapabilities { data_support: yes, ..Default::default() },
            }),
            diagnostic: Some(DiagnosticClientCapabilities {
                dynamic_registration: yes,
                related_document_support: yes,
                ..Default::default()
            }),
            ..Default::default()
        }),
        window: Some(WindowClientCapabilities { work_done_progress: yes, ..Default::default() }),
        general: Some(GeneralClientCapabilities {
            position_encodings: Some(encodings),
            ..Default::default()
        }),
        experimental: Some(json!({ "serverStatusNotification": true })),
        ..Default::default()
    }
}
