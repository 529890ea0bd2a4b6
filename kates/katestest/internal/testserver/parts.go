package testserver

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func same(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }

// postPart creates a binding or an eviction of a pod.
func (s *Server) postPart(w http.ResponseWriter, q *request) error {
	var body map[string]any
	if err := utiljson.Unmarshal(q.body, &body); err != nil {
		return undecodable(err)
	}
	switch q.part {
	case "binding":
		return s.bind(w, q, body)
	case "token":
		return s.token(w, q, body)
	case "eviction":
		return s.evict(w, q)
	}
	return errMethod(q)
}

func success(code int64) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Success", "code": code}
}

// merged is two maps in one; nil if there is nothing in them.
func merged(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// bind assigns a pod to a node, and gives it the annotations and labels of the binding.
func (s *Server) bind(w http.ResponseWriter, q *request, body map[string]any) error {
	node, _, _ := unstructured.NestedString(body, "target", "name")
	binding := &unstructured.Unstructured{Object: body}
	whole := *q
	whole.part = ""
	_, err := s.update(&whole, func(old map[string]any) (map[string]any, error) {
		pod := &unstructured.Unstructured{Object: old}
		if uid := binding.GetUID(); uid != "" && uid != pod.GetUID() {
			return nil, apierrors.NewConflict(q.kind.GR(), q.name, fmt.Errorf("the UID of the pod is %s, and the binding is of %s", pod.GetUID(), uid))
		}
		if had, _, _ := unstructured.NestedString(old, "spec", "nodeName"); had != "" {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, q.name, fmt.Errorf("pod %s is already assigned to node %q", q.name, had))
		}
		c := runtime.DeepCopyJSON(old)
		next := &unstructured.Unstructured{Object: c}
		next.SetAnnotations(merged(pod.GetAnnotations(), binding.GetAnnotations()))
		next.SetLabels(merged(pod.GetLabels(), binding.GetLabels()))
		return c, unstructured.SetNestedField(c, node, "spec", "nodeName")
	})
	if err != nil {
		return err
	}
	s.send(w, q, http.StatusCreated, success(http.StatusCreated))
	return nil
}

// token answers a request for a token of a service account. Nobody can use it: this server asks
// nobody who they are. See
// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/
func (s *Server) token(w http.ResponseWriter, q *request, body map[string]any) error {
	account, ok := s.store.Get(q.key())
	if !ok {
		return s.notFound(q)
	}
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(body)}
	o.SetAPIVersion("authentication.k8s.io/v1")
	o.SetKind("TokenRequest")
	o.SetName(q.name)
	o.SetNamespace(q.namespace)
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	seconds, there, _ := unstructured.NestedInt64(body, "spec", "expirationSeconds")
	if !there {
		seconds = tokenSeconds
		_ = unstructured.SetNestedField(o.Object, seconds, "spec", "expirationSeconds") // the spec is an object
	}
	ends := time.Now().Add(time.Duration(seconds) * time.Second).UTC().Truncate(time.Second)
	uid := (&unstructured.Unstructured{Object: account.Content}).GetUID()
	o.Object["status"] = map[string]any{
		"token": fmt.Sprintf("in-memory:%s:%s:%s", q.namespace, q.name, uid), "expirationTimestamp": ends.Format(time.RFC3339),
	}
	s.send(w, q, http.StatusCreated, o.Object)
	return nil
}

// tokenSeconds is how long a token is good if the request does not say so.
const tokenSeconds = 3600
