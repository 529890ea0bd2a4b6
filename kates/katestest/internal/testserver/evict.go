package testserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/rules"
)

// evict deletes a pod as the delete options in an eviction say. Those in the URL do not count.
// There are no disruption budgets. See
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
func (s *Server) evict(w http.ResponseWriter, q *request) error {
	var eviction struct {
		Metadata      metav1.ObjectMeta    `json:"metadata"`
		DeleteOptions metav1.DeleteOptions `json:"deleteOptions"`
	}
	if err := utiljson.Unmarshal(q.body, &eviction); err != nil {
		return undecodable(err)
	}
	o, all := &eviction.DeleteOptions, []string{metav1.DryRunAll}
	switch _, there := s.store.Get(q.key()); {
	case eviction.Metadata.Name != q.name:
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	case q.how.dry && len(o.DryRun) > 0 && !slices.Equal(o.DryRun, all):
		return fmt.Errorf("the request has the dry-run options %v, and the eviction has %v", all, o.DryRun)
	case !there:
		return s.notFound(q)
	}
	dry := q.how.dry || len(o.DryRun) > 0
	if !dry {
		if err := s.disrupt(q, o); err != nil {
			return err
		}
	}
	if err := refused("DeleteOptions", validation.ValidateDeleteOptions(o)); err != nil { // only now
		return err
	}
	if _, _, err := s.remove(q, *o, dry); err != nil {
		return err
	}
	s.send(w, q, http.StatusCreated, success(http.StatusCreated))
	return nil
}

// disrupt says in the status of a pod that it is evicted. If the options ask for a version, they
// then ask for the one that this has made.
func (s *Server) disrupt(q *request, o *metav1.DeleteOptions) error {
	whole := *q
	whole.part = ""
	made, err := s.update(&whole, func(old map[string]any) (map[string]any, error) {
		if err := rules.Preconditions(q.kind, old, o.Preconditions); err != nil {
			return nil, err
		}
		return old, target(old)
	})
	if p := o.Preconditions; err == nil && p != nil && p.ResourceVersion != nil {
		rv := fmt.Sprint(made.rv)
		o.Preconditions = &metav1.Preconditions{UID: p.UID, ResourceVersion: &rv}
	}
	return err
}

// target sets the condition of a pod that is evicted.
func target(pod map[string]any) error {
	condition := map[string]any{
		"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
		"lastProbeTime": nil, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	all, _, err := unstructured.NestedSlice(pod, "status", "conditions")
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(c any) bool { return c.(map[string]any)["type"] == condition["type"] })
	if at < 0 {
		return unstructured.SetNestedSlice(pod, append(all, condition), "status", "conditions")
	}
	if was := all[at].(map[string]any); was["status"] == condition["status"] {
		condition["lastTransitionTime"] = was["lastTransitionTime"]
	}
	all[at] = condition
	return unstructured.SetNestedSlice(pod, all, "status", "conditions")
}
