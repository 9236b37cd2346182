// What an apiserver's own libraries make of a JSON text and of a patch; memgate's tests compare.
module memgate.dev/tools/compare

go 1.26.0

require (
	gopkg.in/evanphx/json-patch.v4 v4.13.0
	k8s.io/apimachinery v0.37.1
	sigs.k8s.io/json v0.0.0-20260909141634-11ed52e25bc5
)

require (
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
