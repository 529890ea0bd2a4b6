package rules

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const definitionKind = "CustomResourceDefinition.apiextensions.k8s.io"

// Cleanup is the finalizer with which a definition waits for the end of its objects.
const Cleanup = "customresourcecleanup.apiextensions.k8s.io"

// define sets the status of a new definition: its names are not accepted yet.
func define(c Content) {
	c["status"] = map[string]any{"acceptedNames": map[string]any{"kind": "", "plural": ""}, "conditions": nil}
	addStored(c)
}

// addStored notes the version in which a definition's objects are stored from now on.
func addStored(c Content) {
	known, _, _ := unstructured.NestedStringSlice(c, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(c, "spec", "versions")
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		if v["storage"] == true && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	if known != nil {
		_ = unstructured.SetNestedStringSlice(c, known, "status", "storedVersions") // the status is a map
	}
}

// Establish accepts the names of a definition, and says that its kind is served. A real server
// does so a moment after the definition was made. It changes the content.
func Establish(c Content, now time.Time) {
	names, _, _ := unstructured.NestedMap(c, "spec", "names")
	_ = unstructured.SetNestedMap(c, names, "status", "acceptedNames") // the status is a map
	condition(c, now, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
	condition(c, now, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
	if object(c).GetDeletionTimestamp() != nil {
		condition(c, now, "Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	}
}

// condition sets a condition in the status of a definition.
func condition(c Content, now time.Time, kind, status, reason, message string) {
	all, _, _ := unstructured.NestedSlice(c, "status", "conditions")
	set := map[string]any{
		"type": kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
	at := slices.IndexFunc(all, func(one any) bool {
		was, _ := one.(map[string]any)
		return was["type"] == kind
	})
	if at < 0 {
		all = append(all, set)
	} else {
		if was, _ := all[at].(map[string]any); was["status"] == status {
			set["lastTransitionTime"] = was["lastTransitionTime"]
		}
		all[at] = set
	}
	_ = unstructured.SetNestedSlice(c, all, "status", "conditions") // the status is a map
}

// undefine begins the deletion of a definition, which ends when its objects are gone.
func undefine(next *unstructured.Unstructured, now time.Time) (began bool) {
	if next.GetDeletionTimestamp() != nil || slices.Contains(next.GetFinalizers(), Cleanup) {
		return false
	}
	t := metav1.NewTime(now.Truncate(time.Second))
	next.SetDeletionTimestamp(&t)
	next.SetFinalizers(append(next.GetFinalizers(), Cleanup))
	condition(next.Object, now, "Terminating", "True", "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	return true
}
