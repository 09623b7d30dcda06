// Declarations of the workspace composition contract. Written by `cargo xtask schemas`.

export type CompositionJsonPrimitive = string | number | boolean | null;
export type CompositionJsonValue = CompositionJsonPrimitive | readonly CompositionJsonValue[] | CompositionJsonObject;
export type CompositionJsonObject = { readonly [key: string]: CompositionJsonValue };

export type RendererClaim = `message:${string}` | `tool:${string}` | `activity:${string}`;

export type RenderHandle<Kind extends RenderHandleKind = RenderHandleKind> = {
  renderHandleVersion: SchemaVersion;
  kind: Kind;
  id: string;
  data?: CompositionJsonValue;
};

export type SchemaVersion = '0.1';

export type RenderHandleKind =
  | 'route'
  | 'configuration-surface'
  | 'integration-surface'
  | 'message-renderer'
  | 'message-appender'
  | 'tool-renderer'
  | 'activity-renderer'
  | 'fallback-surface';

export type ContributionKind =
  | 'routes'
  | 'sidebar-items'
  | 'configuration-surfaces'
  | 'integration-surfaces'
  | 'message-renderers'
  | 'message-appenders'
  | 'tool-renderers'
  | 'activity-renderers'
  | 'fallback-surfaces';

export type RouteContribution = {
  id: string;
  title?: string;
  order?: number;
  path: `/${string}`;
  renderHandle: RenderHandle<'route'>;
};

export type SidebarItemContribution = {
  id: string;
  title?: string;
  order?: number;
  label: string;
  routeKey: `${string}:${ContributionKind}/${string}`;
};

export type ConfigurationSurfaceContribution = {
  id: string;
  title?: string;
  order?: number;
  purpose: string;
  renderHandle: RenderHandle<'configuration-surface'>;
};

export type IntegrationSurfaceContribution = {
  id: string;
  title?: string;
  order?: number;
  renderHandle: RenderHandle<'integration-surface'>;
};

export type MessageRendererContribution = {
  id: string;
  title?: string;
  order?: number;
  claim: `message:${string}`;
  renderHandle: RenderHandle<'message-renderer'>;
};

export type AppenderPosition =
  | 'before'
  | 'after';

export type MessageAppenderContribution = {
  id: string;
  title?: string;
  order?: number;
  targetMessageType: string;
  position: AppenderPosition;
  renderHandle: RenderHandle<'message-appender'>;
};

export type ToolRendererContribution = {
  id: string;
  title?: string;
  order?: number;
  claim: `tool:${string}`;
  renderHandle: RenderHandle<'tool-renderer'>;
};

export type ActivityRendererContribution = {
  id: string;
  title?: string;
  order?: number;
  claim: `activity:${string}`;
  renderHandle: RenderHandle<'activity-renderer'>;
};

export type FallbackStatus =
  | 'read-only'
  | 'needs-configuration'
  | 'unauthorized'
  | 'disabled'
  | 'error';

export type FallbackSurfaceContribution = {
  id: string;
  title?: string;
  order?: number;
  status: FallbackStatus;
  renderHandle: RenderHandle<'fallback-surface'>;
};

export type Contributions = {
  routes?: readonly RouteContribution[];
  sidebarItems?: readonly SidebarItemContribution[];
  configurationSurfaces?: readonly ConfigurationSurfaceContribution[];
  integrationSurfaces?: readonly IntegrationSurfaceContribution[];
  messageRenderers?: readonly MessageRendererContribution[];
  messageAppenders?: readonly MessageAppenderContribution[];
  toolRenderers?: readonly ToolRendererContribution[];
  activityRenderers?: readonly ActivityRendererContribution[];
  fallbackSurfaces?: readonly FallbackSurfaceContribution[];
};

export type BuiltinDeclaration = {
  ownerId: `builtin-${string}`;
  packageId?: string;
  packageVersion?: string;
  contributions: Contributions;
};

export type RuntimeStatus =
  | 'ready'
  | 'read-only'
  | 'needs-configuration'
  | 'unauthorized'
  | 'disabled'
  | 'error';

export type ModuleRuntime = {
  status: RuntimeStatus;
  reason?: string;
};

export type ModuleInstance = {
  packageId: string;
  packageVersion?: string;
  moduleApiVersion: SchemaVersion;
  instanceId: string;
  contributions: Contributions;
  runtime: ModuleRuntime;
};

export type HideOperation = {
  id: string;
  op: 'hide';
  target: `${string}:${ContributionKind}/${string}`;
};

export type ReplaceOperation = {
  id: string;
  op: 'replace';
  target: `${string}:${ContributionKind}/${string}`;
  use: `${string}:${ContributionKind}/${string}`;
};

export type PathAliasOperation = {
  id: string;
  op: 'pathAlias';
  target: `${string}:${ContributionKind}/${string}`;
  path: `/${string}`;
};

export type RendererOverrideOperation = {
  id: string;
  op: 'rendererOverride';
  target: RendererClaim;
  use: `${string}:${ContributionKind}/${string}`;
};

export type ReorderBeforeOperation = {
  id: string;
  op: 'reorder';
  target: `${string}:${ContributionKind}/${string}`;
  before: `${string}:${ContributionKind}/${string}`;
};

export type ReorderAfterOperation = {
  id: string;
  op: 'reorder';
  target: `${string}:${ContributionKind}/${string}`;
  after: `${string}:${ContributionKind}/${string}`;
};

export type PolicyOperation =
  | HideOperation
  | ReplaceOperation
  | PathAliasOperation
  | RendererOverrideOperation
  | ReorderBeforeOperation
  | ReorderAfterOperation;

export type CompositionPolicy = {
  policySchemaVersion: SchemaVersion;
  operations: readonly PolicyOperation[];
  allowModuleRootRoute?: boolean;
};

export type CompositionInput = {
  compositionSchemaVersion: SchemaVersion;
  builtins?: readonly BuiltinDeclaration[];
  modules: readonly ModuleInstance[];
  policy?: CompositionPolicy;
};

export type ModuleDeclaration = {
  packageId: string;
  packageVersion?: string;
  moduleApiVersion: SchemaVersion;
  instanceId: string;
  contributions: Contributions;
};

export type OwnerKind =
  | 'module'
  | 'builtin';

export type ComposedOwner = {
  ownerKind: OwnerKind;
  ownerId: string;
  packageId?: string;
  packageVersion?: string;
  runtime?: ModuleRuntime;
};

export type ContributionOwner = {
  ownerKind: OwnerKind;
  ownerId: string;
  packageId?: string;
  packageVersion?: string;
};

export type ComposedRoute = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  path: `/${string}`;
  effectivePath: `/${string}`;
  renderHandle: RenderHandle<'route'>;
};

export type ComposedSidebarItem = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  label: string;
  routeKey: `${string}:${ContributionKind}/${string}`;
};

export type ComposedConfigurationSurface = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  purpose: string;
  renderHandle: RenderHandle<'configuration-surface'>;
};

export type ComposedIntegrationSurface = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  renderHandle: RenderHandle<'integration-surface'>;
};

export type ComposedMessageRenderer = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  claim: RendererClaim;
  renderHandle: RenderHandle<'message-renderer'>;
};

export type ComposedMessageAppender = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  targetMessageType: string;
  position: AppenderPosition;
  renderHandle: RenderHandle<'message-appender'>;
};

export type ComposedToolRenderer = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  claim: RendererClaim;
  renderHandle: RenderHandle<'tool-renderer'>;
};

export type ComposedActivityRenderer = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  claim: RendererClaim;
  renderHandle: RenderHandle<'activity-renderer'>;
};

export type ComposedFallback = {
  key: `${string}:${ContributionKind}/${string}`;
  owner: ContributionOwner;
  id: string;
  title?: string;
  order?: number;
  readOnly?: boolean;
  status: FallbackStatus;
  renderHandle: RenderHandle<'fallback-surface'>;
};

export type RequiredRenderHandle = {
  owner: ContributionOwner;
  renderHandleVersion: SchemaVersion;
  kind: RenderHandleKind;
  id: string;
  keys: readonly `${string}:${ContributionKind}/${string}`[];
};

export type WorkspaceComposition = {
  compositionSchemaVersion: SchemaVersion;
  owners: readonly ComposedOwner[];
  routes: readonly ComposedRoute[];
  sidebarItems: readonly ComposedSidebarItem[];
  configurationSurfaces: readonly ComposedConfigurationSurface[];
  integrationSurfaces: readonly ComposedIntegrationSurface[];
  messageRenderers: readonly ComposedMessageRenderer[];
  messageAppenders: readonly ComposedMessageAppender[];
  toolRenderers: readonly ComposedToolRenderer[];
  activityRenderers: readonly ComposedActivityRenderer[];
  fallbacks: readonly ComposedFallback[];
  requiredRenderHandles: readonly RequiredRenderHandle[];
};

export type WorkspaceDiagnosticCode =
  | 'WCP-STRUCT-001'
  | 'WCP-NS-001'
  | 'WCP-NS-002'
  | 'WCP-NS-003'
  | 'WCP-NS-004'
  | 'WCP-ROUTE-001'
  | 'WCP-ROUTE-002'
  | 'WCP-ROUTE-003'
  | 'WCP-RENDERER-001'
  | 'WCP-RENDERER-002'
  | 'WCP-RENDERER-003'
  | 'WCP-RENDERER-004'
  | 'WCP-VERSION-001'
  | 'WCP-VERSION-002'
  | 'WCP-VERSION-003'
  | 'WCP-VERSION-004'
  | 'WCP-VERSION-005'
  | 'WCP-POLICY-001'
  | 'WCP-HANDLE-001'
  | 'WCP-HANDLE-002'
  | 'WCP-HANDLE-003'
  | 'WCP-HANDLE-004'
  | 'WCP-HANDLE-005'
  | 'WCP-HANDLE-006'
  | 'WCP-HANDLE-007';

export type DiagnosticSeverity =
  | 'error'
  | 'warning'
  | 'info';

export type DiagnosticOrigin =
  | 'composer'
  | 'render-runtime'
  | 'host-helper'
  | 'module-conformance';

export type DiagnosticCategory =
  | 'structure'
  | 'namespace'
  | 'route'
  | 'renderer'
  | 'version'
  | 'policy'
  | 'handle';

export type SubjectOwnerKind =
  | 'module'
  | 'builtin'
  | 'host';

export type DiagnosticSubject = {
  ownerKind?: SubjectOwnerKind;
  ownerId?: string;
  packageId?: string;
  contributionKind?: string;
  localId?: string;
  canonicalKey?: string;
  routePath?: string;
  rendererClaim?: string;
};

export type WorkspaceDiagnostic = {
  diagnosticSchemaVersion: SchemaVersion;
  code: WorkspaceDiagnosticCode;
  severity: DiagnosticSeverity;
  origin: DiagnosticOrigin;
  category: DiagnosticCategory;
  subjects: readonly DiagnosticSubject[];
  details: CompositionJsonObject;
  decisionIds: readonly string[];
  docsAnchor: string;
  message: string;
};

export type CompositionOutcome = {
  ok: boolean;
  composition: WorkspaceComposition | null;
  diagnostics: readonly WorkspaceDiagnostic[];
};

export type RenderProviderHandleSummary = {
  renderHandleVersion: string;
  kind: string;
  id: string;
};

export type RenderLoadKind =
  | 'eager'
  | 'lazy'
  | 'unsupported';

export type RenderProviderSummary = {
  owner: DiagnosticSubject;
  packageId: string;
  packageVersion?: string;
  handle: RenderProviderHandleSummary;
  loadKind: RenderLoadKind;
  moduleId?: string;
  trustTier?: string;
};

export type RenderProviderHandle = {
  renderHandleVersion: SchemaVersion;
  kind: RenderHandleKind;
  id: string;
};

export type SuppliedLoadKind =
  | 'eager'
  | 'lazy';

export type RenderProvider = {
  renderHandle: RenderProviderHandle;
  loadKind: SuppliedLoadKind;
  moduleId?: string;
  trustTier?: string;
  template?: string;
};

export type RenderPack = {
  renderRuntimeSchemaVersion: SchemaVersion;
  ownerId: string;
  packageId: string;
  packageVersion?: string;
  providers: readonly RenderProvider[];
};
