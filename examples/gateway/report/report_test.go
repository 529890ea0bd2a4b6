package report

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
	"github.com/kates-go/kates/kates/katestest"
)

const objects = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a, namespace: prod}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: b, namespace: prod}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kates}
spec: {controllerName: gateway.example.com/kates}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: prod}
spec: {gatewayClassName: kates, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: prod}
spec: {parentRefs: [{name: edge}, {name: foreign}]}
`

// cluster is an API server with the kinds of the Gateway API, as the API's module defines them.
type cluster struct {
	*testing.T
	client *kates.Client
	faults *katestest.Faults
	events *clientevents.FakeRecorder
	writer *Writer
}

func newCluster(t *testing.T) *cluster {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	require.NoError(t, err)
	var manifests []katestest.Option
	for _, kind := range []string{"gatewayclasses", "gateways", "httproutes"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config/crd/standard/gateway.networking.k8s.io_"+kind+".yaml"))
		require.NoError(t, err)
		manifests = append(manifests, katestest.WithManifests(string(text)))
	}
	server := katestest.NewServer(t, append(manifests, katestest.WithManifests(objects))...)
	c := &cluster{T: t, faults: katestest.NewFaults(t, 0), events: clientevents.NewFakeRecorder(100)}
	config := rest.CopyConfig(server.Config)
	config.Wrap(c.faults.Wrap)
	c.client, err = kates.NewClientFromRESTConfig(config, kates.WithScheme(translate.Scheme()), katestest.DetectMutations(t))
	require.NoError(t, err)
	t.Cleanup(c.client.Close)
	c.writer = NewWriter(c.client, c.events)
	return c
}

// get reads an object, which has a name alone if it has no namespace.
func get[T any](c *cluster, kind, namespace, name string) *T {
	o := kates.NewUnstructured(kind, map[string]string{"Ingress": "networking.k8s.io/v1"}[kind])
	if kind != "Ingress" {
		o.SetAPIVersion("gateway.networking.k8s.io/v1")
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	got := new(T)
	require.NoError(c, c.client.Get(c.Context(), o, got))
	return got
}

func (c *cluster) ingress(name string) *networkingv1.Ingress {
	return get[networkingv1.Ingress](c, "Ingress", "prod", name)
}

// writes is how many statuses have been sent.
func (c *cluster) writes() int {
	return len(c.faults.Requests(katestest.Match{Verb: "patch"})) + len(c.faults.Requests(katestest.Match{Verb: "update"}))
}

// recorded returns the events since the last call.
func (c *cluster) recorded() (all []string) {
	for len(c.events.Events) > 0 {
		all = append(all, <-c.events.Events)
	}
	return all
}

func desired(reports ...translate.Report) *translate.Desired {
	return &translate.Desired{Reports: reports}
}

func published(ip string) *networkingv1.IngressStatus {
	return &networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: ip}}}}
}

func TestAStatusThatIsRightIsNotWritten(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: c.ingress("a"), Status: published("192.0.2.1")})))
	assert.Equal(t, *published("192.0.2.1"), c.ingress("a").Status)
	assert.Equal(t, 1, c.writes())
	right := desired(
		translate.Report{Object: c.ingress("a"), Status: published("192.0.2.1")},
		translate.Report{Object: c.ingress("b")}, // nothing is published
	)
	before := len(c.faults.Requests(katestest.Match{}))
	require.NoError(t, c.writer.Write(t.Context(), right))
	assert.Len(t, c.faults.Requests(katestest.Match{}), before, "nor read")
	require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: c.ingress("a"), Status: &networkingv1.IngressStatus{}})))
	assert.Empty(t, c.ingress("a").Status.LoadBalancer.Ingress, "an Ingress that is ours no more")
}

func TestOneObjectsFailureHoldsUpNoOther(t *testing.T) {
	c := newCluster(t)
	c.faults.On(katestest.Match{Verb: "patch", Resource: "ingresses/status", Name: "a"}).Status(403, metav1.StatusReasonForbidden, 0)
	gone := c.ingress("b")
	gone.Name = "gone"
	all := desired(
		translate.Report{Object: c.ingress("a"), Status: published("192.0.2.1")},
		translate.Report{Object: c.ingress("b"), Status: published("192.0.2.1")},
		translate.Report{Object: gone, Status: published("192.0.2.1")},
	)
	err := c.writer.Write(t.Context(), all)
	require.ErrorContains(t, err, "report on Ingress prod/a: ")
	assert.NotContains(t, err.Error(), "gone", "an object that is deleted needs no status")
	assert.Equal(t, *published("192.0.2.1"), c.ingress("b").Status)
	c.faults.Heal()
	require.NoError(t, c.writer.Write(t.Context(), all))
	assert.Equal(t, *published("192.0.2.1"), c.ingress("a").Status)
}

func TestAConflictIsTriedAgainWithTheNewestVersion(t *testing.T) {
	c := newCluster(t)
	old := c.ingress("a")
	newer := old.DeepCopy()
	newer.Labels = map[string]string{"changed": "since"}
	require.NoError(t, c.client.Update(t.Context(), newer, nil))
	require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: old, Status: published("192.0.2.1")})))
	assert.Equal(t, "since", c.ingress("a").Labels["changed"])
	assert.Equal(t, *published("192.0.2.1"), c.ingress("a").Status)
}

func TestManyFailuresAreAShortError(t *testing.T) {
	c := newCluster(t)
	c.faults.On(katestest.Match{Verb: "patch"}).Status(403, metav1.StatusReasonForbidden, 0)
	all := desired()
	for range 50 {
		all.Reports = append(all.Reports, translate.Report{Object: c.ingress("a"), Status: published("192.0.2.1")})
	}
	err := c.writer.Write(t.Context(), all)
	require.ErrorContains(t, err, "45 more statuses cannot be written")
	assert.Equal(t, 5, strings.Count(err.Error(), "report on Ingress prod/a"))
}

func condition(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: kind, ObservedGeneration: generation}
}

func TestConditionsKeepTheirTimesWhileTheirStatusIsTheSame(t *testing.T) {
	c := newCluster(t)
	class := func() *gatewayv1.GatewayClass { return get[gatewayv1.GatewayClass](c, "GatewayClass", "", "kates") }
	write := func(status metav1.ConditionStatus, generation int64) {
		require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: class(), Status: &gatewayv1.GatewayClassStatus{
			Conditions: []metav1.Condition{condition("Accepted", status, generation)},
		}})))
	}
	write(metav1.ConditionTrue, 1)
	old := class()
	long := metav1.Date(2020, 1, 1, 0, 0, 0, 0, old.Status.Conditions[0].LastTransitionTime.Location())
	old.Status.Conditions[0].LastTransitionTime = long
	old.Status.Conditions = append(old.Status.Conditions, metav1.Condition{Type: "example.com/Policy", Status: metav1.ConditionTrue, Reason: "Others", LastTransitionTime: long})
	require.NoError(t, c.client.UpdateStatus(t.Context(), old, nil))

	write(metav1.ConditionTrue, 2)
	got := class().Status.Conditions
	require.Len(t, got, 2, "another controller's condition stays")
	assert.Equal(t, int64(2), got[0].ObservedGeneration)
	assert.True(t, got[0].LastTransitionTime.Equal(&long))
	before := c.writes()
	write(metav1.ConditionTrue, 2)
	assert.Equal(t, before, c.writes())
	write(metav1.ConditionFalse, 2)
	assert.False(t, class().Status.Conditions[0].LastTransitionTime.Equal(&long))
}

func TestTheStatusOfAGateway(t *testing.T) {
	c := newCluster(t)
	edge := func() *gatewayv1.Gateway { return get[gatewayv1.Gateway](c, "Gateway", "prod", "edge") }
	address := gatewayv1.IPAddressType
	want := &gatewayv1.GatewayStatus{
		Addresses:  []gatewayv1.GatewayStatusAddress{{Type: &address, Value: "192.0.2.1"}},
		Conditions: []metav1.Condition{condition("Accepted", metav1.ConditionTrue, 1)},
		Listeners: []gatewayv1.ListenerStatus{{
			Name: "http", AttachedRoutes: 2, SupportedKinds: []gatewayv1.RouteGroupKind{{Kind: "HTTPRoute"}},
			Conditions: []metav1.Condition{condition("Conflicted", metav1.ConditionTrue, 1), condition("Accepted", metav1.ConditionFalse, 1)},
		}},
	}
	require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: edge(), Status: want})))
	got := edge().Status
	assert.Equal(t, want.Addresses, got.Addresses)
	require.Len(t, got.Listeners[0].Conditions, 2)
	assert.False(t, got.Listeners[0].Conditions[0].LastTransitionTime.IsZero())
	assert.Zero(t, want.Conditions[0].LastTransitionTime, "the report is not written to")

	want.Listeners[0].Conditions = want.Listeners[0].Conditions[1:]
	require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: edge(), Status: want})))
	require.Len(t, edge().Status.Listeners[0].Conditions, 1, "a condition that is over")
	assert.Equal(t, "Accepted", edge().Status.Listeners[0].Conditions[0].Type)
	before := c.writes()
	require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: edge(), Status: want})))
	assert.Equal(t, before, c.writes())
}

func TestTheParentsOfOtherControllersStay(t *testing.T) {
	c := newCluster(t)
	route := func() *gatewayv1.HTTPRoute { return get[gatewayv1.HTTPRoute](c, "HTTPRoute", "prod", "shop") }
	parent := func(name gatewayv1.ObjectName, controller gatewayv1.GatewayController, conditions ...metav1.Condition) gatewayv1.RouteParentStatus {
		return gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{Name: name}, ControllerName: controller, Conditions: conditions}
	}
	status := func(all ...gatewayv1.RouteParentStatus) *gatewayv1.HTTPRouteStatus {
		return &gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: all}}
	}
	named := func() (all []string) {
		for _, p := range route().Status.Parents {
			all = append(all, string(p.ControllerName)+" "+string(p.ParentRef.Name))
		}
		return all
	}
	write := func(want *gatewayv1.HTTPRouteStatus) {
		require.NoError(t, c.writer.Write(t.Context(), desired(translate.Report{Object: route(), Status: want})))
	}
	accepted := condition("Accepted", metav1.ConditionTrue, 1)
	write(status(parent("old", translate.Controller, accepted), parent("edge", translate.Controller, accepted)))
	theirs := route()
	accepted.LastTransitionTime = metav1.Now()
	theirs.Status.Parents = append(theirs.Status.Parents[:1:1], parent("foreign", "example.com/other", accepted), theirs.Status.Parents[1])
	require.NoError(t, c.client.UpdateStatus(t.Context(), theirs, nil))
	accepted.LastTransitionTime = metav1.Time{}

	write(status(parent("new", translate.Controller, accepted), parent("edge", translate.Controller, accepted)))
	assert.Equal(t, []string{"example.com/other foreign", translate.Controller + " edge", translate.Controller + " new"}, named())
	before := c.writes()
	write(status(parent("new", translate.Controller, accepted), parent("edge", translate.Controller, accepted)))
	assert.Equal(t, before, c.writes(), "the order is that of the parents that are there")
	write(status())
	assert.Equal(t, []string{"example.com/other foreign"}, named())
	theirs = route()
	theirs.Status.Parents = []gatewayv1.RouteParentStatus{}
	require.NoError(t, c.client.UpdateStatus(t.Context(), theirs, nil))
	write(status(parent("edge", translate.Controller, accepted)))
	write(status())
	assert.Empty(t, named(), "the API wants an empty list, not none")
}

func TestAnEventIsRecordedForEachNewProblem(t *testing.T) {
	c := newCluster(t)
	a := c.ingress("a")
	with := func(problems ...translate.Problem) *translate.Desired {
		return desired(translate.Report{Object: a, Problems: problems}, translate.Report{Object: c.ingress("b")})
	}
	x, y, z := translate.Problem{Reason: "InvalidBackend", Message: "x"}, translate.Problem{Reason: "InvalidBackend", Message: "y"}, translate.Problem{Reason: "Conflict", Message: "z"}
	for _, step := range []struct {
		name  string
		given *translate.Desired
		want  []string
	}{
		{"two of one reason are one event", with(x, y, z), []string{"Warning InvalidBackend x; y", "Warning Conflict z"}},
		{"nothing new", with(x, y, z), nil},
		{"less", with(x), nil},
		{"one again", with(x, y), []string{"Warning InvalidBackend x; y"}},
		{"not known yet", desired(translate.Report{Object: a, Pending: true}, translate.Report{Object: c.ingress("b")}), nil},
		{"all over", with(), []string{"Normal Resolved it is served as it is written"}},
		{"still over", with(), nil},
		{"100% of it again", with(translate.Problem{Reason: "Odd", Message: "100%d"}), []string{"Warning Odd 100%d"}},
		{"an object that is gone", desired(), nil},
		{"and back", with(x), []string{"Warning InvalidBackend x"}},
	} {
		require.NoError(t, c.writer.Write(t.Context(), step.given))
		assert.Equal(t, step.want, c.recorded(), step.name)
	}
}

func TestEventsReachTheServer(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	recorder, err := events.NewRecorder(ctx, c.client, translate.Controller)
	require.NoError(t, err)
	defer recorder.Close()
	writer := NewWriter(c.client, recorder)
	require.NoError(t, writer.Write(ctx, desired(translate.Report{Object: c.ingress("a"), Problems: []translate.Problem{{Reason: "Conflict", Message: "an older one has it"}}})))
	created := katestest.Match{Verb: "create", Resource: "events.events.k8s.io", Namespace: "prod"}
	require.NoError(t, c.faults.Wait(ctx, func() bool {
		all := c.faults.Requests(created)
		return len(all) == 1 && all[0].Status == 201
	}))
}

func TestAnEndedContextEndsTheWriting(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.writer.Write(ctx, desired(translate.Report{Object: c.ingress("a"), Status: published("192.0.2.1")}))
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, c.writes())
}
