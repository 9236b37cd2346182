//! That `memgate serve` and `memgate audit` know every flag that an installation gives them.

use std::process::Command;

use memgate_install::component::Component;

use crate::objects::printed;

#[test]
fn are_known_to_memgate() {
    for (component, _) in Component::ALL {
        let objects = printed(&["--component", component]);
        let templates = [
            &objects["Deployment memgate-system memgate"]["spec"]["template"],
            &objects["CronJob memgate-system memgate-audit"]["spec"]["jobTemplate"]["spec"]["template"],
        ];
        for template in templates {
            let arguments = &template["spec"]["containers"][0]["args"];
            let arguments = arguments.as_array().expect("is a list").iter().filter_map(|text| text.as_str());
            // Flags are read in order, so each of them is before help is asked for.
            let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
            let output = command.args(arguments).arg("--help").env_clear().output().expect("memgate starts");
            assert!(output.status.success(), "{component}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
