//! What the controller may do, in `config/rbac`: on the host and in a member.

use federation_controller::rbac::{Access, Place};

use crate::generated::Generated;

/// Each file with what should be in it.
pub(crate) fn generated() -> Generated {
    let file = |name, place| (format!("rbac/{name}.yaml"), Access::usual(place).to_yaml());
    Generated {
        task: "rbac",
        source: "crates/federation-controller/src/rbac",
        subject: "the rules",
        files: vec![file("host", Place::Host), file("member", Place::Member)],
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_rules_in_config_are_current() {
        super::generated()
            .check()
            .expect("cargo xtask rbac brings them up to date");
    }
}
