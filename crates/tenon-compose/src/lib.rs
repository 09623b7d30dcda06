//! Workspace composition: a pure kernel, its policy and the render runtime.
