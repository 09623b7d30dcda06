//! Whether this kernel can confine a process.

#[cfg(target_os = "linux")]
use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

/// The first version of Landlock with all rights to change files, truncation included (Linux 6.2).
#[cfg(target_os = "linux")]
pub const LANDLOCK: ABI = ABI::V3;

/// How far the kernel can confine servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelSupport {
    Full,
    /// It knows Landlock, but not the right to truncate files.
    Partial,
    None,
}

impl KernelSupport {
    /// What this kernel can do.
    #[cfg(target_os = "linux")]
    pub fn now() -> Self {
        match (knows(LANDLOCK), knows(ABI::V1)) {
            (true, _) => Self::Full,
            (false, true) => Self::Partial,
            (false, false) => Self::None,
        }
    }

    /// Only Linux has Landlock.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Self {
        Self::None
    }
}

#[cfg(target_os = "linux")]
fn knows(abi: ABI) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
}
