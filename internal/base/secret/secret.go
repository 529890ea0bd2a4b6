// Package secret recognises Secrets, and hides what they contain: in golden files, recordings and
// the status page. It works on objects as JSON has them, and changes none.
package secret

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of Secrets.
const Kind = "Secret"

// Is reports whether an object says that it is a Secret. Its metadata alone does not: ask what was
// watched, then.
func Is(object map[string]any) bool {
	return object["kind"] == Kind && (object["apiVersion"] == "v1" || object["apiVersion"] == nil)
}

// Resource reports whether the objects of a resource are Secrets.
func Resource(group, resource string) bool { return group == "" && resource == "secrets" }

// Mask returns what stands for a value. encoded: a text is in base64.
type Mask func(value any, encoded bool) any

// Hide returns a copy of a Secret, or of the metadata of one, with masks in place of its values,
// and of its annotations: programs keep copies of the values there.
func Hide(secret map[string]any, mask Mask) map[string]any {
	all := maps.Clone(secret)
	for name, value := range all {
		switch name {
		case "metadata":
			all[name] = hideAnnotations(value, mask)
		case "data", "stringData":
			all[name] = hideAll(value, name == "data", mask)
		}
	}
	return all
}

// HideOwn is Hide for what a program has decoded from a Secret: any of its fields may have a
// value.
func HideOwn(secret map[string]any, mask Mask) map[string]any {
	all := Hide(secret, mask)
	for name, value := range all {
		switch name {
		case "apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData":
		default:
			all[name] = hideAll(value, false, mask)
		}
	}
	return all
}

// hideAnnotations hides those in which programs keep copies of a Secret.
func hideAnnotations(metadata any, mask Mask) any {
	m, _ := metadata.(map[string]any)
	annotations, _ := m["annotations"].(map[string]any)
	if len(annotations) == 0 {
		return metadata
	}
	m, annotations = maps.Clone(m), maps.Clone(annotations)
	for name, value := range annotations {
		if !harmless(name) {
			annotations[name] = hideAll(value, false, mask)
		}
	}
	m["annotations"] = annotations
	return m
}

func harmless(annotation string) bool {
	return strings.HasPrefix(annotation, "kubernetes.io/service-account.") ||
		annotation == metav1.InitialEventsAnnotationKey
}

// hideAll masks all values in a tree.
func hideAll(tree any, encoded bool, mask Mask) any {
	switch t := tree.(type) {
	case nil:
		return nil
	case []any:
		all := make([]any, len(t))
		for i, e := range t {
			all[i] = hideAll(e, encoded, mask)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(t))
		for name, value := range t {
			all[name] = hideAll(value, encoded, mask)
		}
		return all
	}
	return mask(tree, encoded)
}
