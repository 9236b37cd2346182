//! Only accounts that watch Namespaces may read them.

use crate::objects::printed;

/// Whether a printed role reads Namespaces.
fn reads_namespaces(arguments: &[&str]) -> bool {
    let objects = printed(arguments);
    let rules = objects.values().filter_map(|object| object["rules"].as_array()).flatten();
    let mut resources = rules.filter_map(|rule| rule["resources"].as_array()).flatten();
    resources.any(|resource| resource == "namespaces" || resource == "*")
}

#[test]
fn namespaces_are_read_for_orka_and_for_policies_alone() {
    for family in ["ark", "arkonis", "kagent", "orka", "orloj", "sympozium"] {
        let family = format!("--family={family}");
        let arguments = [family.as_str(), "--only", "rbac"];
        assert!(reads_namespaces(&arguments), "{family}");
        let without_policies = [&arguments[..], &["--without=policies"]].concat();
        assert_eq!(reads_namespaces(&without_policies), family.ends_with("orka"), "{family}");
    }
}
