package testserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// Add creates an object as a request would, and then gives it its status as another request would.
// The status of a definition is the server's alone. A namespace that does not exist is made.
func (s *Server) Add(content map[string]any) error {
	o := &unstructured.Unstructured{Object: content}
	k := s.kinds().OfKind(o.GroupVersionKind())
	switch {
	case k == nil:
		return fmt.Errorf("the server has no kind %s in %s", o.GetKind(), o.GetAPIVersion())
	case o.GetDeletionTimestamp() != nil:
		return errors.New("it has a deletionTimestamp: no object begins as one that is being deleted; delete it")
	case k.Namespaced && o.GetNamespace() == "":
		o.SetNamespace("default")
	case !k.Namespaced && o.GetNamespace() != "":
		return fmt.Errorf("the kind is cluster-scoped, the object has a namespace")
	}
	if ns := o.GetNamespace(); ns != "" {
		if _, there := s.store.Get(store.Key{Resource: namespacesStored, Name: ns}); !there {
			if err := s.addNamespace(ns); err != nil {
				return err
			}
		}
	}
	made, err := s.ask(http.MethodPost, k, o.GetNamespace(), "", content)
	if err != nil || !k.Has("status") || k.Storage == definitionsStored {
		return err
	}
	return s.addStatus(k, made, content)
}

// addStatus gives a new object the fields of its status that the content has.
func (s *Server) addStatus(k *kinds.Kind, made *unstructured.Unstructured, content map[string]any) error {
	given, _ := content["status"].(map[string]any)
	was, _ := made.Object["status"].(map[string]any)
	status := maps.Clone(was)
	if status == nil {
		status = make(map[string]any, len(given))
	}
	maps.Copy(status, given)
	if len(given) == 0 || reflect.DeepEqual(status, was) {
		return nil
	}
	_, err := s.ask(http.MethodPatch, k, made.GetNamespace(), "/"+url.PathEscape(made.GetName())+"/status", map[string]any{"status": status})
	return err
}

// ask sends a request to the server itself, and returns the object of the answer.
func (s *Server) ask(method string, k *kinds.Kind, namespace, rest string, content map[string]any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	p := "/apis/" + k.Group + "/" + k.Version
	if k.Group == "" {
		p = "/api/" + k.Version
	}
	if namespace != "" {
		p += "/namespaces/" + url.PathEscape(namespace)
	}
	request := httptest.NewRequest(method, p+"/"+k.Resource+rest, bytes.NewReader(raw))
	request.Header.Set("User-Agent", "kates-test")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", string(types.MergePatchType))
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	o := &unstructured.Unstructured{}
	err = utiljson.Unmarshal(answer.Body.Bytes(), &o.Object)
	if answer.Code < http.StatusBadRequest {
		return o, err
	}
	return nil, fmt.Errorf("%d: %v", answer.Code, o.Object["message"]) // it is a Status, or the code says it all
}
