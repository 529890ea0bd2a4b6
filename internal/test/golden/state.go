package golden

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// State is the text of all objects of a server. Two servers have the same text if the same objects
// are there, whatever has happened on the way. Besides what [Masks] mask it has no generations; an
// observedGeneration is current or old. A UID is <uid of …>, and what the server has made of
// generateName is <any>.
func State(objects []map[string]any) (string, error) {
	masks := &Masks{state: true}
	for _, o := range objects {
		masks.learn(o)
	}
	var all []string
	for _, o := range objects {
		document, err := yaml.Marshal(masks.mask(o))
		if err != nil {
			return "", fmt.Errorf("the state of the server as YAML: %w", err)
		}
		metadata, _ := o["metadata"].(map[string]any)
		all = append(all, fmt.Sprintf("--- # %s\n%s", nameOf(o, metadata), document))
	}
	slices.Sort(all)
	return strings.Join(all, ""), nil
}

// withoutCounters leaves out the generation of an object. Whether its controllers have observed it
// stays.
func withoutCounters(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	generation, counted := metadata["generation"]
	if !counted {
		return object
	}
	object = maps.Clone(object)
	for name, value := range object {
		if name != "metadata" {
			object[name] = observed(value, generation)
		}
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "generation")
	object["metadata"] = metadata
	return object
}

func observed(tree, generation any) any {
	switch t := tree.(type) {
	case []any:
		all := make([]any, len(t))
		for i, e := range t {
			all[i] = observed(e, generation)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(t))
		for name, value := range t {
			switch {
			case name != "observedGeneration":
				all[name] = observed(value, generation)
			case fmt.Sprint(value) == fmt.Sprint(generation):
				all[name] = "current"
			default:
				all[name] = "old"
			}
		}
		return all
	}
	return tree
}
