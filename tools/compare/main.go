// Command compare reads JSON texts and applies JSON patches with the libraries that a kube-apiserver uses, manifests
// with those of kubectl, and URLs as all clients in Go do, for tests that compare memgate with them.
//
// Each line of standard input is one task, each line of standard output its result, in order:
//
//	{"text":"<base64>"}                      read it
//	{"pod":"<base64>"}                       read it as a Pod
//	{"review":"<base64>"}                    read it as an AdmissionReview
//	{"text":"<base64>","patch":"<base64>"}   read it, then apply an RFC 6902 patch
//	{"manifests":"<base64>"}                 the objects that kubectl would send, up to an error
//	{"url":"<base64>"}                       its scheme, host and port
//
//	{"value":<what it is>}                   or {"error":"why not"}
package main

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"net/url"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
)

type task struct {
	Text      []byte `json:"text"`
	Pod       []byte `json:"pod"`
	Review    []byte `json:"review"`
	Patch     []byte `json:"patch"`
	Manifests []byte `json:"manifests"`
	URL       []byte `json:"url"`
}

type result struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

// longest is the longest line: two texts of 10 MiB in base64.
const longest = 32 << 20

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), longest)
	output := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		answer, err := stdjson.Marshal(run(lines.Bytes()))
		if err != nil {
			answer = fmt.Appendf(nil, `{"error":%q}`, err.Error())
		}
		output.Write(append(answer, '\n'))
		output.Flush()
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(line []byte) result {
	var task task
	if err := stdjson.Unmarshal(line, &task); err != nil {
		return result{Error: "no task: " + err.Error()}
	}
	if task.URL != nil {
		return parse(string(task.URL))
	}
	if task.Manifests != nil {
		return objects(task.Manifests)
	}
	if task.Pod != nil {
		return read(task.Pod, &core.Pod{})
	}
	if task.Review != nil {
		return read(task.Review, &admission.AdmissionReview{})
	}
	text := task.Text
	if task.Patch != nil {
		patch, err := jsonpatch.DecodePatch(task.Patch)
		if err != nil {
			return result{Error: "patch: " + err.Error()}
		}
		if text, err = patch.Apply(text); err != nil {
			return result{Error: "apply: " + err.Error()}
		}
	}
	return read(text, new(any))
}

func read(text []byte, value any) result {
	if err := json.UnmarshalCaseSensitivePreserveInts(text, value); err != nil {
		return result{Error: "read: " + err.Error()}
	}
	return result{Value: value}
}

func objects(text []byte) result {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	values := []any{}
	for {
		var value any
		if err := decoder.Decode(&value); err != nil {
			return result{Value: values}
		}
		if object, is := value.(map[string]any); is {
			values = append(values, object)
		}
	}
}

func parse(text string) result {
	address, err := url.Parse(text)
	if err != nil {
		return result{Error: err.Error()}
	}
	return result{Value: []string{address.Scheme, address.Hostname(), address.Port()}}
}
