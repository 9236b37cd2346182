//! The init containers that wait for a memory service: where they have a network, and what becomes of those that have none.

use crate::common::{POD_WAIT_NO_NETWORK, TAKEN_OUT};
use crate::inject::parts::init_containers_pointer;
use crate::inject::viable::CutOff;
use crate::inject::viable::sizes::AddedContainer;
use crate::sympozium::prelude::*;
use crate::sympozium::variables::{PRIVATE_URL, SHARED_URL};
use memgate_model::platform_settings::{Quantities, Sizes, Waits};
use serde_json::Value;

use super::{PodContext, WantedBuilder, is_loopback, part};

/// An init container that waits for a server.
pub(super) struct Wait {
    /// Its name.
    name: &'static str,
    /// The server in the message of a failure.
    server: &'static str,
    /// The variable with the server's URL.
    variable: &'static str,
}

/// Waits for the private memory.
pub(super) const PRIVATE_WAIT: Wait =
    Wait { name: "wait-for-memory", server: "memory server", variable: PRIVATE_URL };

/// Waits for the shared memory.
pub(super) const SHARED_WAIT: Wait =
    Wait { name: "wait-for-shared-memory", server: "shared memory server", variable: SHARED_URL };

impl WantedBuilder<'_, '_> {
    /// Adds an init container that waits for the server that the agent will use. Not if that server is not known or is in
    /// the pod, if the pod already has this init container, or if it would have no network.
    pub(super) fn wait(
        &mut self,
        wait: &Wait,
        default_url: &str,
        origin: &Origin,
        state: &mut StateReader<'_>,
    ) {
        let url = self.waited_url(wait, default_url);
        if let Some(existing) = self.existing_wait(wait) {
            return self.judge(wait, existing, url);
        }
        let is_there = self.pod.around.parts.has_container(wait.name);
        let Some(url) = url.filter(|_| !is_there && self.settings.wait != Waits::Never) else { return };
        if self.pod.around.unresolved(&url, &HOST_NETWORK_DNS).is_some() {
            return;
        }
        if let Some(why) = self.pod.around.cut_off(None, Endpoint::parse(&url).port()) {
            return self.cut_off(wait, None, why, &url);
        }
        let security = self.pod.around.security_context(self.pod.container);
        let (setting, pack) = (&self.settings.resources.wait, Quantities::new());
        let default = [["50m", "32Mi"], ["100m", "64Mi"]];
        let added = AddedContainer { name: wait.name, default, setting, pack };
        let Some(sizes) = self.sizes(&added, state) else { return };
        let tree = wait_container(wait, &url, &self.settings.wait_image, &security, &sizes);
        let places = self.pod.around.places();
        let place = if wait.variable == PRIVATE_URL { places.front } else { places.end };
        self.parts.init_containers.push((place, part(wait.name, tree, origin)));
    }

    /// The index of an init container of this name.
    fn existing_wait(&self, wait: &Wait) -> Option<usize> {
        self.pod.around.parts.init_containers().iter().position(|it| it.name.as_deref() == Some(wait.name))
    }

    /// Takes an init container of the pod out that cannot succeed, if memgate added it, and reports it. One that another
    /// author added waits for a server that is known only while the URL of the agent's server is.
    fn judge(&mut self, wait: &Wait, existing: usize, known_url: Option<String>) {
        let it = self.pod.around.parts.init_containers().get(existing);
        // As a native sidecar, which another webhook made of it, it keeps no pod from starting.
        let is_sidecar = it.is_some_and(Container::is_native_sidecar);
        if is_sidecar || known_url.is_none() && !self.pod.is_ours(wait.name) {
            return;
        }
        let is_known = known_url.is_some();
        let url = known_url.unwrap_or_else(|| match wait.variable {
            SHARED_URL => {
                let ensemble = self.found.ensemble.map_or("", |ensemble| &ensemble.name);
                shared_url(ensemble, self.pod.namespace)
            }
            _ => private_url(&self.found.instance, self.pod.namespace),
        });
        if let Some(finding) = self.pod.around.unresolved(&url, &HOST_NETWORK_DNS) {
            // The judge of the pod reports it for a URL that is known.
            let is_reported = is_known || self.warnings.iter().any(|warning| warning.code == finding.code);
            let is_taken_out = self.take_out(wait, "would not find its server any more");
            if is_taken_out && !is_reported && self.settings.wait != Waits::Never {
                self.warnings.push(finding);
            }
        } else if let Some(why) = self.pod.around.cut_off(Some(existing), Endpoint::parse(&url).port()) {
            self.cut_off(wait, Some(existing), why, &url);
        }
    }

    /// The sizes of an added container; `None` if none fit, which is reported.
    pub(super) fn sizes(&mut self, added: &AddedContainer<'_>, state: &mut StateReader<'_>) -> Option<Sizes> {
        let PodContext { around, container, namespace, .. } = &self.pod;
        let sizes = added.sizes(around, container, namespace, state);
        sizes.map_err(|finding| self.unmet.push(*finding)).ok()
    }

    /// The URL of the server that the agent will use; `None` if it is not known, or if the server is in the pod.
    fn waited_url(&self, wait: &Wait, default_url: &str) -> Option<String> {
        let url = match self.existing.get(wait.variable) {
            None => default_url,
            Some((_, entry)) => entry.literal()?,
        };
        let is_elsewhere = !url.is_empty() && !url.contains("$(") && !is_loopback(url);
        is_elsewhere.then(|| url.to_owned())
    }

    /// Reports a wait without a network, once for a pod, and takes it out if memgate added it. Settings with which the pod
    /// should have none ask for no report.
    fn cut_off(&mut self, wait: &Wait, existing: Option<usize>, why: CutOff<'_>, url: &str) {
        let everywhere = matches!(why, CutOff::Everywhere(_));
        let is_taken_out =
            everywhere && existing.is_some() && self.take_out(wait, "would have no network any more");
        if self.settings.wait == Waits::Never {
            return;
        }
        let (name, port) = (wait.name, Endpoint::parse(url).port());
        let end = match existing {
            None => "it is left out",
            Some(_) if is_taken_out => TAKEN_OUT,
            Some(_) => "the pod fails after 120 s",
        };
        let (first, next) = match why {
            CutOff::Everywhere(proxy) => {
                let proxy = proxy.map_or_else(|| "of its mesh".to_owned(), quoted);
                let first = format!(
                    "\"{name}\" would have no network: the proxy {proxy} starts after all init containers; {end}. Use \
                     native sidecars, or exclude port {port}"
                );
                (first, format!("; the same for \"{name}\" and port {port}: {end}"))
            }
            CutOff::Behind(index) => {
                let redirector = self.pod.around.parts.init_containers().get(index);
                let redirector = quoted(redirector.and_then(|it| it.name.as_deref()).unwrap_or_default());
                let url = quoted_text(url);
                let first =
                    format!("\"{name}\" stands behind {redirector} and cannot reach {url}; put it in front");
                (first, format!("; the same for \"{name}\" and {url}"))
            }
        };
        let list = init_containers_pointer();
        match &mut self.no_network {
            Some((_, message)) => *message += &next,
            None => {
                self.no_network = Some((existing.map_or_else(|| list.clone(), |it| list.index(it)), first));
            }
        }
    }

    /// Warns about waits without a network. Those for a server that the agent would not get today are judged here.
    pub(super) fn report_no_network(&mut self) {
        for wait in [&PRIVATE_WAIT, &SHARED_WAIT] {
            let mut variables = self.variables.iter().filter(|it| it.name == wait.variable);
            let is_judged = variables.any(|it| !it.literal_value().is_some_and(is_loopback));
            if let Some(existing) = self.existing_wait(wait).filter(|_| !is_judged) {
                self.judge(wait, existing, None);
            }
        }
        let finding = self.no_network.take();
        self.warnings.extend(finding.map(|(at, text)| Finding::warn(&POD_WAIT_NO_NETWORK, at, text)));
    }

    /// Takes a wait that memgate added out of the pod, where it could not succeed any more. Returns whether it does.
    fn take_out(&mut self, wait: &Wait, rule: &'static str) -> bool {
        let is_ours = self.pod.is_ours(wait.name);
        if is_ours {
            let inits = self.pod.around.parts.init_containers().iter().enumerate();
            let named = inits.filter(|(_, it)| it.name.as_deref() == Some(wait.name));
            self.parts.taken_out.extend(named.map(|(index, _)| (index, rule)));
        }
        is_ours
    }
}

/// An init container that succeeds as soon as the memory server at this URL answers.
fn wait_container(
    Wait { name, server, .. }: &Wait,
    url: &str,
    image: &str,
    security: &Value,
    sizes: &Sizes,
) -> Value {
    let url = format!("{}/health", url.strip_suffix('/').unwrap_or(url)).replace('\'', r"'\''");
    // `timeout` bounds the total time, however long each try takes. The script must not contain `$(`, which
    // Kubernetes would read as a variable.
    let script = format!(
        "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY\n\
         export URL='{url}'\n\
         timeout 120 sh -c 'until timeout 2 wget -q -O /dev/null \"$URL\"; do \
         echo \"waiting for $URL\"; sleep 2; done' && exit 0\n\
         echo 'ERROR: {server} not ready after 120s'\n\
         exit 1\n"
    );
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "resources": sizes,
        "securityContext": security,
    })
}
