package kinds

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/client/kinds/selectable"
)

func FuzzAKindIsReadAsKubectlReadsIt(f *testing.F) {
	for _, arg := range []string{
		"svc", "Service", "services.v1.", "v1/Service", "Deployment.v1.apps", "apps/v1/Deployment", "deploy.apps", "a/b/c/d", "", ".", "..", "a..b",
		"/", "a/", "/a", "Straße", "İ.apps", "\xff", "storageclass.storage", "x.v1.y.z.", "SERVICES.V1.",
	} {
		f.Add(arg)
	}
	groups := []*metav1.APIGroup{
		{Name: "", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}},
		{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}}},
	}
	served := newServed(groups, []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "services", SingularName: "service", Kind: "Service", ShortNames: []string{"svc"}, Namespaced: true}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", SingularName: "deployment", Kind: "Deployment", ShortNames: []string{"deploy"}, Namespaced: true}}},
	}, nil)
	f.Fuzz(func(t *testing.T, arg string) {
		requests, err := parse(arg)
		if (err == nil) != (len(requests) > 0) || (Check(arg) == nil) != (err == nil) {
			t.Fatalf("%q: %v, %v", arg, requests, err)
		}
		for _, r := range requests {
			if r.name == "" || r.literal == "" || r.name != strings.ToLower(r.literal) {
				t.Fatalf("%q has a reading without a name: %v", arg, r)
			}
			_, _ = r.expandShortName()
			found := served.find(r)
			if found == nil {
				continue
			}
			if !r.anyGroup && !strings.HasPrefix(found.gvr.Group, r.group) || r.version != "" && found.gvr.Version != r.version {
				t.Fatalf("%q is %v, which it does not say", arg, found.gvr)
			}
		}
		if strings.Contains(arg, "/") {
			return
		}
		// As kubectl splits it: resource.version.group, or resource.group.
		gvr, gr := schema.ParseResourceArg(strings.ToLower(arg))
		if err != nil || gvr == nil && !strings.Contains(arg, ".") {
			return
		}
		said := func(group, version string) bool {
			for _, r := range requests {
				if r.version == version && (r.group == group || r.anyGroup && group == "") {
					return true
				}
			}
			return false
		}
		if gvr != nil && !said(gvr.Group, gvr.Version) || gvr == nil && gr.Group != "" && !said(gr.Group, "") {
			t.Fatalf("%q: %v, and to kubectl %v or %v", arg, requests, gvr, gr)
		}
	})
}

func FuzzSchemasAreReadAndAskedForAnyPart(f *testing.F) {
	for _, document := range []string{
		`{"components":{"schemas":{"a":{"allOf":[null],"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}]}}}}`,
		`{"components":{"schemas":{"a":{"$ref":"#/components/schemas/a","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}]}}}}`,
		`{"components":{"schemas":{"a":{"properties":{"a":{"items":{"additionalProperties":{"items":null}}}},"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}],"x-kubernetes-selectable-fields":[{"fieldPath":"a..b"},{"fieldPath":"a.a"}]}}}}`,
		`{"components":{"schemas":{"a":true,"b":null}}}`, `{"components":null}`, `[]`,
	} {
		f.Add([]byte(document), "f:a", `{"a":[{"a":7}]}`)
	}
	f.Fuzz(func(t *testing.T, document []byte, name, object string) {
		found, _ := ReadSchemas(schema.GroupVersion{Group: "g", Version: "v1"}, document)
		index := 0
		for _, path := range []fieldpath.Path{nil, {{FieldName: &name}}, {{FieldName: &name}, {Index: &index}, {FieldName: &name}}} {
			for _, part := range []any{map[string]any{}, []any{}} {
				_ = found.Whole("K", path, part)
			}
		}
		u := &unstructured.Unstructured{}
		if utiljson.Unmarshal([]byte(object), &u.Object) != nil {
			return
		}
		for _, fields := range []selectable.Fields{found.selectable["K"], selectable.Custom([]string{name})} {
			for _, field := range fields.Names() {
				if _, ok := fields.Value(u, field); !ok {
					t.Fatalf("%q is declared, and unknown", field)
				}
			}
		}
		for _, r := range selectable.BuiltIns() {
			fields := selectable.BuiltIn(r)
			for _, field := range fields.Names() {
				_, _ = fields.Value(u, field)
			}
		}
	})
}
