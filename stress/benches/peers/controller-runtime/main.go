// Command controller-runtime is what memgate is measured against: the memory of arkonis agents injected as webhooks
// in Go usually do it. The Pod is decoded into its type, changed, written again, and the patch is the difference of
// the two texts; agents and memories come from a map, as they would from an informer's cache.
//
//	controller-runtime --state FILE --certs FOLDER --listen ADDRESS
//
// FILE holds JSON objects between lines of `---`, FOLDER tls.crt and tls.key. `/mutate` is as in memgate; pods that
// are of no agent are left alone. It does no more than that: no checks of what would not work, no warnings, no metrics
// of its own.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		MemoryRef *corev1.LocalObjectReference `json:"memoryRef"`
	} `json:"spec"`
}

type memory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Backend     string `json:"backend"`
		VectorStore *struct {
			Provider   string `json:"provider"`
			Endpoint   string `json:"endpoint"`
			Collection string `json:"collection"`
			TTLSeconds int    `json:"ttlSeconds"`
		} `json:"vectorStore"`
	} `json:"spec"`
}

type injector struct {
	decoder  admission.Decoder
	agents   map[types.NamespacedName]*agent
	memories map[types.NamespacedName]*memory
}

func (i *injector) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := i.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	name := pod.Labels["arkonis.dev/deployment"]
	if name == "" {
		return admission.Allowed("of no agent")
	}
	memory := i.memoryOf(types.NamespacedName{Namespace: request.Namespace, Name: name})
	if memory == nil {
		return admission.Allowed("its agent has no memory")
	}
	variables := environment(memory)
	for at := range pod.Spec.Containers {
		container := &pod.Spec.Containers[at]
		if container.Name == "agent" {
			container.Env = append(missing(variables, container.Env), container.Env...)
		}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["peer.memgate.dev/injected"] = memory.Name
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func (i *injector) memoryOf(name types.NamespacedName) *memory {
	agent := i.agents[name]
	if agent == nil || agent.Spec.MemoryRef == nil {
		return nil
	}
	return i.memories[types.NamespacedName{Namespace: name.Namespace, Name: agent.Spec.MemoryRef.Name}]
}

// environment is for vector stores alone: the bench has no others.
func environment(memory *memory) []corev1.EnvVar {
	variables := []corev1.EnvVar{{Name: "AGENT_MEMORY_BACKEND", Value: memory.Spec.Backend}}
	if store := memory.Spec.VectorStore; store != nil {
		variables = append(variables,
			corev1.EnvVar{Name: "AGENT_MEMORY_VECTOR_STORE_PROVIDER", Value: store.Provider},
			corev1.EnvVar{Name: "AGENT_MEMORY_VECTOR_STORE_ENDPOINT", Value: store.Endpoint},
			corev1.EnvVar{Name: "AGENT_MEMORY_VECTOR_STORE_COLLECTION", Value: store.Collection},
			corev1.EnvVar{Name: "AGENT_MEMORY_VECTOR_STORE_TTL", Value: strconv.Itoa(store.TTLSeconds)},
		)
	}
	return variables
}

// missing leaves out what the container sets itself.
func missing(wanted, existing []corev1.EnvVar) []corev1.EnvVar {
	left := make([]corev1.EnvVar, 0, len(wanted)+len(existing))
	for _, variable := range wanted {
		set := false
		for at := range existing {
			set = set || existing[at].Name == variable.Name
		}
		if !set {
			left = append(left, variable)
		}
	}
	return left
}

// load fills the maps, each object as often as it stands in the file.
func (i *injector) load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := json.Unmarshal([]byte(document), &kind); err != nil {
			return fmt.Errorf("failed to read %s: %w", path, err)
		}
		switch kind.Kind {
		case "ArkAgent":
			object := &agent{}
			if err := json.Unmarshal([]byte(document), object); err != nil {
				return err
			}
			i.agents[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
		case "ArkMemory":
			object := &memory{}
			if err := json.Unmarshal([]byte(document), object); err != nil {
				return err
			}
			i.memories[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
		}
	}
	return nil
}

func run() error {
	state := flag.String("state", "", "the file of agents and memories")
	certs := flag.String("certs", "", "the folder of tls.crt and tls.key")
	listen := flag.String("listen", "127.0.0.1:9443", "the address to answer at")
	flag.Parse()
	host, port, err := net.SplitHostPort(*listen)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	injector := &injector{
		decoder:  admission.NewDecoder(scheme),
		agents:   map[types.NamespacedName]*agent{},
		memories: map[types.NamespacedName]*memory{},
	}
	if err := injector.load(*state); err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: number, CertDir: *certs})
	server.Register("/mutate", &admission.Webhook{Handler: injector})
	return server.Start(context.Background())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
