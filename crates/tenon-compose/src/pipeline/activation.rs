//! Activation: which contributions of a module take part, by the runtime status that the host resolved.

use super::draft::{Draft, Role, State};
use crate::kind::{ContributionKind, Status};

pub(super) fn apply(draft: &mut Draft<'_>) {
    let owners = &draft.owners;
    for contribution in &mut draft.contributions {
        let status = owners[contribution.owner].status;
        if contribution.state == State::Active && !stays(contribution.kind, contribution.role, status) {
            contribution.state = State::Absent;
        }
    }
}

fn stays(kind: ContributionKind, role: Role<'_>, status: Status) -> bool {
    let fallback_for_it = matches!(role, Role::Fallback { status: declared } if declared == status);
    match status {
        Status::Ready | Status::ReadOnly => kind != ContributionKind::FallbackSurfaces,
        Status::NeedsConfiguration => kind == ContributionKind::ConfigurationSurfaces || fallback_for_it,
        Status::Unauthorized | Status::Disabled => fallback_for_it,
        Status::Error => kind == ContributionKind::IntegrationSurfaces || fallback_for_it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_by_status() {
        let kept = |status: Status| -> Vec<&str> {
            let of = |kind: ContributionKind, role| stays(kind, role, status).then_some(kind.as_str());
            let other =
                ContributionKind::ALL.iter().filter(|kind| **kind != ContributionKind::FallbackSurfaces);
            let fallbacks = Status::ALL.iter().filter_map(|declared| {
                stays(ContributionKind::FallbackSurfaces, Role::Fallback { status: *declared }, status)
                    .then_some(declared.as_str())
            });
            other.filter_map(|kind| of(*kind, Role::Integration)).chain(fallbacks).collect()
        };
        let everything = &ContributionKind::WORDS[..8];
        assert_eq!(kept(Status::Ready), everything);
        assert_eq!(kept(Status::ReadOnly), everything);
        assert_eq!(kept(Status::NeedsConfiguration), ["configuration-surfaces", "needs-configuration"]);
        assert_eq!(kept(Status::Unauthorized), ["unauthorized"]);
        assert_eq!(kept(Status::Disabled), ["disabled"]);
        assert_eq!(kept(Status::Error), ["integration-surfaces", "error"]);
    }
}
