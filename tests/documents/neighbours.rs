//! That docs/managed.md names everything that memgate knows beside memory in a pod.

use memgate_platforms::inject::neighbours::{MESHES, SIDECARS};

const PAGE: &str = include_str!("../../docs/managed.md");

#[test]
fn all_of_them_are_on_the_page() {
    let meshes = MESHES.iter().flat_map(|mesh| {
        let of_cni = mesh.cni.iter().filter_map(|sign| sign.init_container);
        let of_ports = [mesh.excluded_outbound, mesh.excluded_inbound].into_iter().flatten();
        mesh.redirectors.iter().copied().chain(of_cni).chain(of_ports)
    });
    let unnamed = |name: &&str| !PAGE.contains(&format!("`{name}`"));
    let unnamed: Vec<&str> = SIDECARS.into_iter().chain(meshes).filter(unnamed).collect();
    assert_eq!(unnamed, [""; 0]);
}
