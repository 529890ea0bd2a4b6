package kates

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func TestOnlyAQueryByACustomFieldReadsOpenAPIAndAnAbsentFieldIsNotReadable(t *testing.T) {
	s := kindstest.New(t, false)
	s.Declare("spec.hostname", "spec.count")
	for path, of := range map[string]string{
		kindstest.HostsList: `"apiVersion":"getambassador.io/v3alpha1","kind":"HostList"`, "/api/v1/pods": `"apiVersion":"v1","kind":"PodList"`,
	} {
		s.Respond(path, http.StatusOK, `{`+of+`,"metadata":{"resourceVersion":"1"},"items":[]}`)
	}
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	host := NewUnstructured("Host", "getambassador.io/v3alpha1")
	host.Object["spec"] = map[string]any{"hostname": "h", "count": int64(3), "other": "o"}
	pod := NewUnstructured("Pod", "v1")
	field := func(q Query, o objects.Object, name string) (string, bool) {
		t.Helper()
		q.Name = "Q"
		compiled, err := c.compiler().All(wantedOf([]Query{q}))
		require.NoError(t, err)
		r, err := compiled[0].Resolve(t.Context())
		require.NoError(t, err)
		if r.Field == nil {
			return "", false
		}
		return r.Field(o, name)
	}
	v, ok := field(Query{Kind: "pods", FieldSelector: "spec.restartPolicy=Never"}, pod, "spec.restartPolicy")
	assert.True(t, ok)
	assert.Equal(t, "Always", v)
	_, ok = field(Query{Kind: "hosts", FieldSelector: "metadata.name=x"}, host, "spec.hostname")
	assert.False(t, ok)
	_, ok = field(Query{Kind: "hosts"}, host, "spec.hostname")
	assert.False(t, ok)
	assert.Zero(t, s.Requests()[kindstest.OpenAPIIndex], "nobody needs it")

	v, ok = field(Query{Kind: "hosts", FieldSelector: "metadata.name=x,spec.count=3"}, host, "spec.count")
	assert.True(t, ok)
	assert.Equal(t, "3", v)
	_, ok = field(Query{Kind: "hosts", AnyOf: []Selection{{LabelSelector: "a=b"}, {FieldSelector: "spec.count=3"}}}, host, "spec.count")
	assert.True(t, ok, "one of a union")
	_, ok = field(Query{Kind: "hosts", FieldSelector: "spec.other=o"}, host, "spec.other")
	assert.False(t, ok, "a field that nobody declares")
	assert.Equal(t, 1, s.Requests()[kindstest.HostsDocument])
}

func TestAFieldThatTheServerRefusesIsAnError(t *testing.T) {
	s := kindstest.New(t, false)
	s.Declare("spec.hostname", "spec.count")
	s.Respond(kindstest.HostsList, http.StatusBadRequest,
		`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"BadRequest","code":400,"message":"field label not supported: spec.hostname"}`)
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, selector := range []string{"spec.hostname=x", "metadata.namespace=x"} {
		_, err = c.Watch(t.Context(), Query{Name: "Q", Kind: "hosts", FieldSelector: selector})
		assert.ErrorContains(t, err, `query "Q"`, "though it is declared")
		assert.ErrorContains(t, err, "field label not supported")
	}
}
