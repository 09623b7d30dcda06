//! Activation: deactivates the contributions that a module's runtime status excludes.

use super::draft::{ContributionFields, Draft, State};
use crate::kind::{ContributionKind, RuntimeStatus};

pub(super) fn apply(draft: &mut Draft<'_>) {
    let owners = &draft.owners;
    for contribution in &mut draft.contributions {
        let status = owners[contribution.owner].status;
        if contribution.state == State::Active && !stays(contribution.kind, contribution.fields, status) {
            contribution.state = State::Inactive;
        }
    }
}

fn stays(kind: ContributionKind, fields: ContributionFields<'_>, status: RuntimeStatus) -> bool {
    let fallback_for_it =
        matches!(fields, ContributionFields::Fallback { status: declared } if declared == status);
    match status {
        RuntimeStatus::Ready | RuntimeStatus::ReadOnly => kind != ContributionKind::FallbackSurfaces,
        RuntimeStatus::NeedsConfiguration => {
            kind == ContributionKind::ConfigurationSurfaces || fallback_for_it
        }
        RuntimeStatus::Unauthorized | RuntimeStatus::Disabled => fallback_for_it,
        RuntimeStatus::Error => kind == ContributionKind::IntegrationSurfaces || fallback_for_it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_keeps_its_contributions() {
        let kept = |status: RuntimeStatus| -> Vec<&str> {
            let of = |kind: ContributionKind, fields| stays(kind, fields, status).then_some(kind.as_str());
            let other =
                ContributionKind::ALL.iter().filter(|kind| **kind != ContributionKind::FallbackSurfaces);
            let fallbacks = RuntimeStatus::ALL.iter().filter_map(|declared| {
                stays(
                    ContributionKind::FallbackSurfaces,
                    ContributionFields::Fallback { status: *declared },
                    status,
                )
                .then_some(declared.as_str())
            });
            other.filter_map(|kind| of(*kind, ContributionFields::Integration)).chain(fallbacks).collect()
        };
        let everything = &ContributionKind::NAMES[..8];
        assert_eq!(kept(RuntimeStatus::Ready), everything);
        assert_eq!(kept(RuntimeStatus::ReadOnly), everything);
        assert_eq!(
            kept(RuntimeStatus::NeedsConfiguration),
            ["configuration-surfaces", "needs-configuration"]
        );
        assert_eq!(kept(RuntimeStatus::Unauthorized), ["unauthorized"]);
        assert_eq!(kept(RuntimeStatus::Disabled), ["disabled"]);
        assert_eq!(kept(RuntimeStatus::Error), ["integration-surfaces", "error"]);
    }
}
