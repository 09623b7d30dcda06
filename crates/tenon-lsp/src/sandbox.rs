//! Unix: the sandbox of a server's process, where the kernel has one (decision 0313).

#[cfg(target_os = "linux")]
#[path = "sandbox/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/other.rs"]
mod platform;

pub(crate) use platform::Sandbox;
