package testserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/testserver/store"
)

// Add creates an object as a request would. A namespace that does not exist is made.
func (s *Server) Add(content map[string]any) error {
	o := &unstructured.Unstructured{Object: content}
	k := s.kinds().OfKind(o.GroupVersionKind())
	if k == nil {
		return fmt.Errorf("the server has no kind %s in %s", o.GetKind(), o.GetAPIVersion())
	}
	if k.Namespaced && o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	if !k.Namespaced && o.GetNamespace() != "" {
		return fmt.Errorf("the kind is cluster-scoped, the object has a namespace")
	}
	if ns := o.GetNamespace(); ns != "" {
		if _, there := s.store.Get(store.Key{Resource: namespacesStored, Name: ns}); !there {
			if err := s.addNamespace(ns); err != nil {
				return err
			}
		}
	}
	return s.post_(k.GVR(), o.GetNamespace(), content)
}

// post_ sends a POST to the server itself.
func (s *Server) post_(r schema.GroupVersionResource, namespace string, content map[string]any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	p := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		p = "/api/" + r.Version
	}
	if namespace != "" {
		p += "/namespaces/" + url.PathEscape(namespace)
	}
	request := httptest.NewRequest(http.MethodPost, p+"/"+r.Resource, bytes.NewReader(raw))
	request.Header.Set("User-Agent", "kates-test")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	if answer.Code == http.StatusCreated {
		return nil
	}
	var status struct{ Message string }
	_ = json.Unmarshal(answer.Body.Bytes(), &status) // else the message is empty, and the code says it
	return fmt.Errorf("%d: %s", answer.Code, status.Message)
}
