package testserver

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/fields"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// documented returns which OpenAPI v3 document has a kind's schema, "" if none has. Only kinds that
// are defined have one: no Go type says the schema of a built-in kind.
func documented(k *kinds.Kind) string {
	if k.Custom == nil || k.Custom.Schema == nil {
		return ""
	}
	return "apis/" + k.GroupVersion().String()
}

// document returns the documents of a set of kinds. A document is made when it is asked for first.
// A real server has it a moment after the kind is served; here it is there at once.
func document(set *kinds.Set) *handler3.OpenAPIService {
	documents := map[string][]*kinds.Kind{}
	for _, k := range set.All() {
		if at := documented(k); at != "" {
			documents[at] = append(documents[at], k)
		}
	}
	service := handler3.NewOpenAPIService()
	for at, all := range documents {
		service.UpdateGroupVersionLazy(at, cached.Once(cached.Func(func() (*spec3.OpenAPI, string, error) {
			d, err := documentOf(all)
			return d, "", err
		})))
	}
	return service
}

// documentOf has the schemas of kinds as they are applied by, with what a server adds. It names no
// paths, which no client of objects reads.
func documentOf(all []*kinds.Kind) (*spec3.OpenAPI, error) {
	schemas := map[string]*spec.Schema{}
	for _, k := range all {
		s, err := fields.TypeOf(k)
		if err != nil {
			return nil, err
		}
		if len(k.Rules.Fields) > 0 {
			declared := make([]any, len(k.Rules.Fields))
			for i, field := range k.Rules.Fields {
				declared[i] = map[string]any{"fieldPath": field}
			}
			s.AddExtension("x-kubernetes-selectable-fields", declared)
		}
		group := strings.Split(k.Group, ".")
		slices.Reverse(group)
		schemas[strings.Join(append(group, k.Version, k.Kind), ".")] = s
	}
	return &spec3.OpenAPI{
		Version:    "3.0.0",
		Info:       &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes CRD Swagger", Version: "v0.1.0"}},
		Paths:      &spec3.Paths{},
		Components: &spec3.Components{Schemas: schemas},
	}, nil
}

// describe answers a request for a document.
func (s *Server) describe(w http.ResponseWriter, r *http.Request, at string) {
	now := s.serving.Load()
	if !slices.ContainsFunc(now.set.All(), func(k *kinds.Kind) bool { return documented(k) == at }) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	now.documents.HandleGroupVersion(w, r)
}
