package e2e

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	kubeversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/stream"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/kates"
)

// These tests are of what the supported versions of Kubernetes do otherwise: each runs on every one
// of them (make versions), and knows what that version does. docs/versions.md has a row for each.

// since reports whether the tests' server is of a version of Kubernetes, such as 1.36, or a newer
// one.
func since(t testing.TB, minor string) bool {
	t.Helper()
	has, err := kubeversion.ParseGeneric(testCluster.Version)
	require.NoError(t, err)
	return has.AtLeast(kubeversion.MustParseGeneric(minor))
}

// sayVersion prints what the server says of itself; tools/versions reads that.
func sayVersion() error {
	d, err := discovery.NewDiscoveryClientForConfig(testCluster.Config)
	if err != nil {
		return err
	}
	v, err := d.ServerVersion()
	if err == nil {
		fmt.Println("the API server says that it is", v.GitVersion)
	}
	return err
}

func TestTheServerIsOfTheVersionThatWasChosen(t *testing.T) {
	t.Parallel()
	v, err := newWire(t).client(t).ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, testCluster.Version, v.GitVersion)
	if chosen := os.Getenv("KATES_KUBERNETES"); chosen != "" {
		assert.Equal(t, chosen, v.Major+"."+v.Minor)
	}
}

// TestG1G4SharesAreRightOnServersThatShardAndOnThoseThatDoNot: servers since 1.36 shard, with a
// feature gate that older ones do not know.
func TestG1G4SharesAreRightOnServersThatShardAndOnThoseThatDoNot(t *testing.T) {
	t.Parallel()
	shards := since(t, "1.36")
	c := sharedCluster(t, shardingFlags(t)...)
	for way, config := range map[string]stream.Config{"paged": {PageSize: 20}, "streamed": {StreamLists: true}} {
		t.Run(way, func(t *testing.T) {
			sharesAreAll(t, c, shared{configMaps, objects.Typed, shardrange.UID, shards}, config)
		})
	}
}

// shardingFlags has servers shard that can.
func shardingFlags(t testing.TB) []string {
	if since(t, "1.36") {
		return []string{"feature-gates=ShardedListAndWatch=true"}
	}
	return nil
}

// TestG4VersionsOfOneResourceAreNumbersThatGrow: Kubernetes promises that since 1.35 (KEP-5504), and
// older servers keep it.
func TestG4VersionsOfOneResourceAreNumbersThatGrow(t *testing.T) {
	t.Parallel()
	ns, d := namespace(t), foreign(t)
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	for _, r := range []schema.GroupVersionResource{configMaps, hosts, leases} {
		before := "1"
		grows := func(now string) {
			t.Helper()
			order, err := resourceversion.CompareResourceVersion(before, now)
			require.NoError(t, err)
			require.Negative(t, order, "%s: %s, then %s", r.Resource, before, now)
			before = now
		}
		for i := range 3 {
			u := object(r, ns, fmt.Sprint("x", i), nil)
			if r == leases {
				u.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
			}
			u, err := d.Resource(r).Namespace(ns).Create(t.Context(), u, metav1.CreateOptions{})
			require.NoError(t, err)
			grows(u.GetResourceVersion())
			u.SetLabels(map[string]string{"a": "b"})
			u, err = d.Resource(r).Namespace(ns).Update(t.Context(), u, metav1.UpdateOptions{})
			require.NoError(t, err)
			grows(u.GetResourceVersion())
		}
		list, err := d.Resource(r).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		order, err := resourceversion.CompareResourceVersion(before, list.GetResourceVersion())
		require.NoError(t, err)
		require.LessOrEqual(t, order, 0)
	}
}

// kindsSince are kinds, and the version of Kubernetes that has each of them first.
var kindsSince = map[string]string{
	"resourceclaims.v1.resource.k8s.io":                         "1.34",
	"mutatingadmissionpolicies.v1.admissionregistration.k8s.io": "1.36",
	"clustertrustbundles.v1.certificates.k8s.io":                "1.37",
	"podcertificaterequests.v1.certificates.k8s.io":             "1.37",
	"devicetaintrules.v1.resource.k8s.io":                       "1.37",
	"storageversionmigrations.v1.storagemigration.k8s.io":       "1.37",
}

// TestG1AKindThatOnlyNewerServersHaveIsAbsentOnOlderOnes: as an optional kind it is absent, and
// otherwise an error that names it.
func TestG1AKindThatOnlyNewerServersHaveIsAbsentOnOlderOnes(t *testing.T) {
	t.Parallel()
	c := newWire(t).client(t)
	for kind, minor := range kindsSince {
		acc, err := c.Watch(t.Context(), kates.Query{Name: "Q", Kind: kind, Optional: true})
		require.NoError(t, err)
		<-acc.Changed()
		var snap struct{ Q []*kates.Unstructured }
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Equal(t, !since(t, minor), acc.Status().Queries[0].Absent, kind)
		acc.Close()

		acc, err = c.Watch(t.Context(), kates.Query{Name: "Q", Kind: kind})
		if since(t, minor) {
			require.NoError(t, err, kind)
			acc.Close()
			continue
		}
		var unknown *kates.UnknownKindError
		require.ErrorAs(t, err, &unknown, kind)
	}
}

// TestADeprecatedKindIsWatchedAndTheWarningOfTheServerIsLoggedOnce: v1 Endpoints, since 1.33.
func TestADeprecatedKindIsWatchedAndTheWarningOfTheServerIsLoggedOnce(t *testing.T) {
	t.Parallel()
	ns, out := namespace(t), &log{}
	c := newWire(t).client(t, kates.WithLogger(slog.New(secrecy.Handler(slog.NewTextHandler(out, nil)))))
	for range 2 {
		acc, err := c.Watch(t.Context(), kates.Query{Name: "Q", Kind: "endpoints", Namespace: ns})
		require.NoError(t, err)
		<-acc.Changed()
		require.NoError(t, acc.Ready())
		acc.Close()
	}
	assert.Equal(t, 1, out.count("v1 Endpoints is deprecated in v1.33+"))
}

// TestAFieldThatTheServerDoesNotKnowIsAnErrorOfApplyThatNamesIt: the Go types of the program are
// newer than the server, or the program has a typing error.
func TestAFieldThatTheServerDoesNotKnowIsAnErrorOfApplyThatNamesIt(t *testing.T) {
	t.Parallel()
	ns, out := namespace(t), &log{}
	c := newWire(t).client(t, kates.WithLogger(slog.New(secrecy.Handler(slog.NewTextHandler(out, nil)))))
	u := object(configMaps, ns, "x", nil)
	u.Object["nosuch"] = "a"
	assert.ErrorContains(t, c.Apply(t.Context(), u, nil), ".nosuch: field not declared in schema")

	// The types of this client have a field that is of 1.37.
	job := &batchv1.Job{ObjectMeta: named(ns, "x"), Spec: batchv1.JobSpec{
		Template:   corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		Scheduling: &batchv1.JobSchedulingConfiguration{},
	}}
	err := c.Apply(t.Context(), job.DeepCopy(), nil)
	if since(t, "1.37") {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, ".spec.scheduling: field not declared in schema")
	// A creation goes without the field, and the server warns.
	require.NoError(t, c.Create(t.Context(), job, nil))
	assert.Equal(t, 1, out.count(`unknown field \"spec.scheduling\"`))
}

// TestErrorsOfMetadataHaveTheReasonsThatTheDocumentSays: since 1.37 the error of an owner reference
// has its index, and what is missing is required.
func TestErrorsOfMetadataHaveTheReasonsThatTheDocumentSays(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cm := &corev1.ConfigMap{ObjectMeta: named(ns, "x")}
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", UID: "u"}}
	err := newWire(t).client(t).Create(t.Context(), cm, nil)
	require.True(t, kates.IsInvalid(err), "%v", err)
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	want := metav1.StatusCause{
		Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.ownerReferences.name", Message: `Invalid value: "": must not be empty`,
	}
	if since(t, "1.37") {
		want = metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueRequired, Field: "metadata.ownerReferences[0].name", Message: "Required value: must not be empty",
		}
	}
	assert.Equal(t, []metav1.StatusCause{want}, status.ErrStatus.Details.Causes)
}

func TestAnAutoscalerHasAGenerationWhereTheDocumentSaysSo(t *testing.T) {
	o := newOwnedTest(t)
	scaler := o.scalerV2("x", 2)
	require.NoError(t, o.client.Create(t.Context(), scaler, &scaler))
	var status, spec int64 // after a change of either
	if since(t, "1.37") {
		status, spec = 1, 2
	}
	assert.Equal(t, status, scaler.Generation)
	scaler.Status.DesiredReplicas = 1
	require.NoError(t, o.client.UpdateStatus(t.Context(), scaler, &scaler))
	assert.Equal(t, status, scaler.Generation)
	scaler.Spec.MaxReplicas = 3
	require.NoError(t, o.client.Update(t.Context(), scaler, &scaler))
	assert.Equal(t, spec, scaler.Generation)
}

// TestApplyOwnedGoesOnWhereAWriteThroughAnotherVersionLosesWhoManagesTheFields: the other version of
// a custom kind has other fields, so the server cannot say who manages them. Servers before 1.37
// then remove all managed fields of the object, later ones leave them as they were.
func TestApplyOwnedGoesOnWhereAWriteThroughAnotherVersionLosesWhoManagesTheFields(t *testing.T) {
	o := newOwnedTest(t)
	g := newGadget(t, o.ns)
	g.installVersions(map[string]string{"v1": "b", "v1beta1": "d"})
	o.others = foreign(t).Resource(g.resource("v1")).Namespace(o.ns)
	require.NoError(t, o.client.WaitFor(t.Context(), g.kind))
	wanted := g.object("v1", o.ns, "x", "red")
	wanted.SetLabels(nil)
	wanted.Object["spec"] = map[string]any{"color": "red", "b": "2"}
	set := o.set(wanted)
	set.Kinds = nil
	o.apply(set)
	before := len(o.stored("x").GetManagedFields())
	require.NotZero(t, before)

	_, err := foreign(t).Resource(g.resource("v1beta1")).Namespace(o.ns).Patch(t.Context(), "x", kates.MergePatchType, []byte(`{"spec":{"d":"new"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	if since(t, "1.37") {
		require.Len(t, o.stored("x").GetManagedFields(), before)
	} else {
		require.Empty(t, o.stored("x").GetManagedFields())
	}
	require.NotContains(t, o.stored("x").Object["spec"], "b")
	require.NoError(t, o.client.Sync(t.Context()))
	assert.Len(t, o.apply(set).Applied, 1)
	assert.Equal(t, map[string]any{"color": "red", "b": "2"}, o.stored("x").Object["spec"])
	assert.Len(t, o.apply(set).Unchanged, 1)
}

// installVersions makes the kind with these versions, v1 stored. Each has the field color of the
// spec, and one of its own.
func (g *gadget) installVersions(fields map[string]string) {
	g.t.Helper()
	versions := []any{}
	for name, field := range fields {
		text := map[string]any{"type": "string"}
		versions = append(versions, map[string]any{
			"name": name, "served": true, "storage": name == "v1",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec": map[string]any{"type": "object", "properties": map[string]any{"color": text, field: text}},
			}}},
		})
	}
	_, err := g.others().Resource(definitions).Create(g.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": g.kind},
		"spec": map[string]any{
			"group": g.group, "scope": "Namespaced", "versions": versions,
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
		},
	}}, metav1.CreateOptions{})
	require.NoError(g.t, err)
	g.serving("v1", true)
	g.serving("v1beta1", true)
}
