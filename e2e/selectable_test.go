package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/kinds/selectable"
	"github.com/kates-go/kates/kates"
)

// served returns the cluster's resources that can be listed, without custom ones.
func served(t *testing.T) map[schema.GroupVersionResource]bool {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(testCluster.Config)
	require.NoError(t, err)
	_, lists, err := d.ServerGroupsAndResources()
	if !discovery.IsGroupDiscoveryFailedError(err) { // another test removes a custom group
		require.NoError(t, err)
	}
	all := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			custom := strings.HasSuffix(gv.Group, "kates.io") || gv.Group == "getambassador.io"
			if !custom && !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				all[gv.WithResource(r.Name)] = true
			}
		}
	}
	return all
}

// unlimited returns a dynamic client without a rate limit.
func unlimited(t *testing.T) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(testCluster.Config)
	config.QPS = -1
	d, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return d
}

func TestTheServerTakesExactlyTheFieldsThatAreBuiltIn(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, field := range []string{ // strategies compute some, but the API refuses them
		"name", "spec.leaseName", "status.replicas", "status.successful", "spec.type", "spec.clusterIP", "spec.signerName",
		"spec.driver", "spec.nodeName", "spec.unschedulable", "status.phase", "type", "reason", "source", "involvedObject.kind", "regarding.kind",
	} {
		known[field] = true
	}
	for _, r := range selectable.BuiltIns() {
		for _, field := range selectable.BuiltIn(r).Names() {
			known[field] = true
		}
	}
	d, tested := unlimited(t), 0
	for r := range served(t) {
		for field := range known {
			_, err := d.Resource(r).List(t.Context(), metav1.ListOptions{FieldSelector: field + "=x", Limit: 1})
			if err != nil && !apierrors.IsBadRequest(err) {
				require.True(t, apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err), "%s: %v", r, err)
				continue
			}
			_, declared := selectable.BuiltIn(r)[field]
			declared = declared && (field != "spec.pool.name" || since(t, "1.37"))
			assert.Equal(t, declared, err == nil, "%s by %s: %v", r, field, err)
			tested++
		}
	}
	assert.Greater(t, tested, 1000)
}

// samples are objects that differ in their selectable fields, in JSON without name and kind. A
// status is written after the object is made.
var samples = map[schema.GroupVersionResource]struct {
	kind    string
	cluster bool
	objects []string
}{
	{Version: "v1", Resource: "pods"}: {"Pod", false, []string{
		`{"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		`{"spec":{"containers":[{"name":"c","image":"i"}],"nodeName":"n","restartPolicy":"Never","schedulerName":"s","hostNetwork":true}}`,
		`{"spec":{"containers":[{"name":"c","image":"i"}],"restartPolicy":"OnFailure"},"status":{"phase":"Running","podIPs":[{"ip":"10.9.0.1"},{"ip":"fd00::1"}]}}`,
		`{"spec":{"containers":[{"name":"c","image":"i"}],"serviceAccount":"other"},"status":{"phase":"Failed","podIP":"10.9.0.2","nominatedNodeName":"m"}}`,
	}},
	{Version: "v1", Resource: "secrets"}: {"Secret", false, []string{`{}`, `{"type":"example.com/t"}`}},
	{Version: "v1", Resource: "services"}: {"Service", false, []string{
		`{"spec":{"ports":[{"port":80}]}}`, `{"spec":{"ports":[{"port":80}],"type":"NodePort"}}`,
		`{"spec":{"ports":[{"port":80}],"clusterIP":"None"}}`, `{"spec":{"type":"ExternalName","externalName":"example.com"}}`,
	}},
	{Version: "v1", Resource: "events"}: {"Event", false, []string{
		`{"involvedObject":{"kind":"Pod","namespace":"NS","name":"p","uid":"u","apiVersion":"v1","resourceVersion":"7","fieldPath":"spec"},"reason":"R","type":"Normal"}`,
		`{"involvedObject":{"namespace":"NS"},"source":{"component":"c"}}`,
		`{"involvedObject":{"namespace":"NS"},"source":{"component":"c"},"reportingComponent":"d"}`,
		`{"involvedObject":{"namespace":"NS"},"reportingComponent":"d","type":"Warning"}`,
	}},
	{Group: "events.k8s.io", Version: "v1", Resource: "events"}: {"Event", false, []string{
		`{"regarding":{"kind":"Pod","namespace":"NS","name":"p","uid":"u","apiVersion":"v1","resourceVersion":"7","fieldPath":"spec"},` +
			`"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/d","reportingInstance":"i","action":"a","reason":"R","type":"Normal"}`,
		`{"regarding":{"namespace":"NS"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/e","reportingInstance":"i","action":"a","reason":"S","type":"Warning"}`,
	}},
	{Version: "v1", Resource: "namespaces"}: {"Namespace", true, []string{`{}`, `{"status":{"phase":"Active"}}`}},
	{Version: "v1", Resource: "nodes"}:      {"Node", true, []string{`{}`, `{"spec":{"unschedulable":true}}`}},
	{Version: "v1", Resource: "replicationcontrollers"}: {"ReplicationController", false, []string{
		`{"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		`{"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"replicas":3}}`,
	}},
	{Group: "batch", Version: "v1", Resource: "jobs"}: {"Job", false, []string{
		`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`,
		`{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}},"status":{"succeeded":1}}`,
	}},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}: {"CertificateSigningRequest", true, []string{
		`{"spec":{"signerName":"example.com/s","usages":["client auth"],"request":"CSR"}}`,
		`{"spec":{"signerName":"example.com/t","usages":["client auth"],"request":"CSR"}}`,
	}},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}: {"ClusterTrustBundle", true, []string{
		`{"spec":{"trustBundle":"CA"}}`,
		`{"metadata":{"name":"example.com:s:NS-1"},"spec":{"signerName":"example.com/s","trustBundle":"CA"}}`,
	}},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests"}: {"PodCertificateRequest", false, []string{
		`{"spec":{"signerName":"example.com/s","podName":"p","nodeName":"n","POD"}}`,
		`{"spec":{"signerName":"example.com/t","podName":"q","nodeName":"m","POD"}}`,
	}},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}: {"ResourceSlice", true, []string{
		`{"spec":{"driver":"d.example.com","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`,
		`{"spec":{"driver":"e.example.com","allNodes":true,"pool":{"name":"q","generation":1,"resourceSliceCount":1}}}`,
	}},
}

// makeSamples creates the samples of a resource. It returns the answer to the last write of each.
func makeSamples(t *testing.T, d dynamic.Interface, r schema.GroupVersionResource, ns string) (made []*unstructured.Unstructured) {
	t.Helper()
	s := samples[r]
	in := within(d, r, ns)
	for i, text := range s.objects {
		u := &unstructured.Unstructured{}
		text = strings.NewReplacer(`"NS"`, `"`+ns+`"`, `:NS-`, `:`+ns+`-`, `"CSR"`, `"`+signingRequest(t)+`"`,
			`"CA"`, authority(t), `"POD"`, podsCertificate(t)).Replace(text)
		head := `{"apiVersion":"` + r.GroupVersion().String() + `","kind":"` + s.kind + `"`
		if text != "{}" {
			head += ","
		}
		require.NoError(t, u.UnmarshalJSON([]byte(head+text[1:])))
		if u.GetName() == "" {
			u.SetName(fmt.Sprintf("%s-%d", ns, i))
		}
		u.SetNamespace(ns)
		if s.cluster {
			u.SetNamespace("")
		}
		u.SetLabels(map[string]string{"of": ns})
		got, err := in.Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err, "%s %s", r, text)
		if status, ok := u.Object["status"]; ok {
			got.Object["status"] = withStart(r, status)
			got, err = in.UpdateStatus(t.Context(), got, metav1.UpdateOptions{})
			require.NoError(t, err, "%s %s", r, text)
		}
		made = append(made, got)
	}
	return made
}

func within(d dynamic.Interface, r schema.GroupVersionResource, ns string) dynamic.ResourceInterface {
	if samples[r].cluster {
		return d.Resource(r)
	}
	return d.Resource(r).Namespace(ns)
}

// withStart adds what the server requires in a status.
func withStart(r schema.GroupVersionResource, status any) any {
	if r.Resource == "jobs" {
		status.(map[string]any)["startTime"] = "2026-01-01T00:00:00Z"
	}
	return status
}

func TestBuiltInFieldsAreJudgedAsTheServerDoes(t *testing.T) {
	t.Parallel()
	all := served(t)
	for _, r := range selectable.BuiltIns() {
		if _, ok := samples[r]; !ok {
			assert.True(t, !all[r] || r.Group == "resource.k8s.io", "%s is served and has no samples", r)
			continue
		}
		if !all[r] {
			assert.False(t, since(t, "1.37"), "%s is not served", r)
			continue
		}
		t.Run(r.GroupResource().String(), func(t *testing.T) {
			t.Parallel()
			d, ns := unlimited(t), namespace(t)
			for _, account := range []string{"default", "other"} {
				_, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(ns).Create(t.Context(),
					&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": account}}}, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			made := makeSamples(t, d, r, ns)
			for _, field := range selectable.BuiltIn(r).Names() {
				if field == "spec.pool.name" && !since(t, "1.37") {
					continue
				}
				parity(t, within(d, r, ns), ns, selectable.BuiltIn(r), field, made)
			}
		})
	}
}

// parity takes each value of a field that an object has, and two more. It compares the server's
// list with what the package says of the objects that were written.
func parity(t *testing.T, in dynamic.ResourceInterface, ns string, f selectable.Fields, field string, made []*unstructured.Unstructured) {
	t.Helper()
	values, of := map[string]bool{"": true, "none": true}, map[string]string{}
	for _, u := range made {
		v, ok := f.Value(u, field)
		require.True(t, ok, field)
		values[v], of[u.GetName()] = true, v
	}
	for v := range values {
		for _, selector := range []fields.Selector{fields.OneTermEqualSelector(field, v), fields.OneTermNotEqualSelector(field, v)} {
			want := []string{}
			for _, u := range made {
				if (of[u.GetName()] == v) == (selector.Requirements()[0].Operator != "!=") {
					want = append(want, u.GetName())
				}
			}
			list, err := in.List(t.Context(), metav1.ListOptions{FieldSelector: selector.String(), LabelSelector: "of=" + ns})
			require.NoError(t, err, selector)
			got := []string{}
			for _, u := range list.Items {
				got = append(got, u.GetName())
			}
			assert.ElementsMatch(t, got, want, "%s: the server's, and ours", selector)
		}
	}
}

func TestFieldsThatTheServerRefusesAreErrorsOfWatch(t *testing.T) {
	t.Parallel()
	c := newWire(t).client(t)
	for kind, selector := range map[string]string{
		"replicasets": "status.replicas=1", "persistentvolumes": "name=x", "persistentvolumeclaims": "name=x", "pods": "spec.priority=0",
		"nodes": "metadata.namespace=x", "namespaces": "name=x", "hosts": "spec.extra=x", "configmaps": "data.x=y", "services": "spec.type=x,spec.x=y",
		"events.v1.events.k8s.io": "source=x", "events.v1.": "reportingController=x", "leases": "spec.holderIdentity=x",
	} {
		_, err := c.Watch(t.Context(), kates.Query{Name: "Q", Kind: kind, FieldSelector: selector})
		if assert.Error(t, err, "%s %s", kind, selector) {
			assert.ErrorContains(t, err, `query "Q"`)
			assert.Regexp(t, "not supported|not a known field selector", err.Error(), "%s %s", kind, selector)
		}
	}
}
