package patch

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/jsonform"
)

// MergeUpdate lays source over target, as kates.MergeUpdate documents it.
func MergeUpdate(target, source *unstructured.Unstructured) {
	if target.Object == nil {
		target.Object = map[string]any{}
	}
	sections := map[string]any{}
	for section, value := range source.Object {
		switch section {
		case "apiVersion", "kind", "metadata", "status":
		default:
			copied, err := jsonform.Copy(value)
			if err != nil {
				panic(fmt.Sprintf("kates.MergeUpdate: %s is not JSON: %v", section, err))
			}
			sections[section] = copied
		}
	}
	kind := target.GroupVersionKind()
	if kind.Kind == "" {
		kind = source.GroupVersionKind()
	}
	sections, _ = WithoutStringData(kind, sections)
	maps.Copy(target.Object, sections)
	for _, field := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		mergeMetadata(target, source, field)
	}
}

// mergeMetadata takes over one field of the metadata. It reads the content and not the accessors
// of Unstructured: these read a malformed field (a label that is a number, a []string) as absent,
// and then the server could not reject it.
func mergeMetadata(target, source *unstructured.Unstructured, field string) {
	over, err := jsonform.Copy(metadataOf(source)[field])
	if err != nil {
		panic(fmt.Sprintf("kates.MergeUpdate: metadata.%s is not JSON: %v", field, err))
	}
	switch added := over.(type) {
	case nil:
		return
	case []any:
		if len(added) == 0 {
			return
		}
	case map[string]any:
		if len(added) == 0 {
			return
		}
		base, err := jsonform.Copy(metadataOf(target)[field])
		if there, ok := base.(map[string]any); ok && err == nil {
			maps.Copy(there, added)
			over = there
		}
	}
	metadata := metadataOf(target)
	if metadata == nil {
		metadata = map[string]any{}
		target.Object["metadata"] = metadata
	}
	metadata[field] = over
}

// metadataOf returns the metadata of an object, nil if it has none.
func metadataOf(u *unstructured.Unstructured) map[string]any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	return metadata
}
