package judge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/bench/internal/operator/api"
	"github.com/kates-go/kates/kates"
)

// Fingerprints are hashes of all objects that Apps own, by App, kind and name. They leave out
// what a server generates each time, and the label and the annotation with which kates marks what
// it has applied.
type Fingerprints map[string][sha256.Size]byte

// Fingerprints returns those of the current objects.
func (j *Judge) Fingerprints() (Fingerprints, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make(Fingerprints)
	for name, r := range j.roots {
		for key, o := range r.objects {
			text, err := json.Marshal(normal(o))
			if err != nil {
				return nil, fmt.Errorf("encode %v of %s: %w", key, name, err)
			}
			all[fmt.Sprintf("%s of %s: %s", key.Kind, name, key.Name)] = sha256.Sum256(text)
		}
	}
	return all, nil
}

// normal returns a copy of an object as any operator should have made it.
func normal(o api.Object) api.Object {
	c := o.DeepCopyObject().(api.Object)
	c.SetUID("")
	c.SetResourceVersion("")
	c.SetGeneration(0)
	c.SetCreationTimestamp(metav1.Time{})
	c.SetManagedFields(nil)
	labels := maps.Clone(c.GetLabels())
	delete(labels, kates.OwnedSetLabel)
	c.SetLabels(labels)
	annotations := maps.Clone(c.GetAnnotations())
	delete(annotations, kates.AppliedAnnotation)
	c.SetAnnotations(annotations)
	owners := slices.Clone(c.GetOwnerReferences())
	for i := range owners {
		owners[i].UID = ""
	}
	c.SetOwnerReferences(owners)
	if d, ok := c.(*appsv1.Deployment); ok {
		d.Status = appsv1.DeploymentStatus{}
	}
	return c
}

// Difference names the first object that differs, or returns "".
func (f Fingerprints) Difference(g Fingerprints) string {
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if f[key] != g[key] {
			return key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g)) {
		if _, ok := f[key]; !ok {
			return key
		}
	}
	return ""
}
