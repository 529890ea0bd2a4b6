package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// fullPod is a pod with more than tests keep.
func fullPod(name, node string) *kates.Pod {
	return &kates.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{"example.com/team": "a", "other": "b"},
		},
		Spec: corev1.PodSpec{
			NodeName: node, Hostname: "host", ServiceAccountName: "robot",
			Containers: []corev1.Container{{Name: "c", Image: "image:1", Command: []string{"run"}}, {Name: "d", Image: "image:2"}},
		},
		Status: corev1.PodStatus{PodIP: "10.0.0.1", Phase: corev1.PodRunning},
	}
}

// keepClients are clients of a fake and of a server that has the objects, with the form of typed
// fields as their statuses say it.
func keepClients(t *testing.T, objects ...kates.Object) map[string]*kates.Client {
	t.Helper()
	return map[string]*kates.Client{
		"fake":   katestest.NewClient(t, objects...),
		"server": katestest.NewServer(t, katestest.WithObjects(objects...)).Client(t),
	}
}

func TestOnlyWhatIsKeptIsHeld(t *testing.T) {
	for name, c := range keepClients(t, fullPod("a", "n1")) {
		t.Run(name, func(t *testing.T) {
			type pods struct {
				Pods    []*kates.Pod
				Untyped []*kates.Unstructured
				Maps    []map[string]any
			}
			keep := kates.Keep("spec.nodeName", "spec.containers.image", `metadata.annotations["example.com/team"]`)
			s, err := kates.Watch[pods](t.Context(), c,
				kates.Query{Name: "Pods", Projection: keep},
				kates.Query{Name: "Untyped", Kind: "pods", Projection: keep},
				kates.Query{Name: "Maps", Kind: "pods", Projection: keep})
			require.NoError(t, err)
			var snap pods
			next(t, s, &snap, func() bool { return true })
			require.Len(t, snap.Pods, 1)
			onlyKept(t, snap.Pods[0], "n1")

			u := snap.Untyped[0]
			content := map[string]any{
				"nodeName": "n1", "containers": []any{map[string]any{"image": "image:1"}, map[string]any{"image": "image:2"}},
			}
			assert.Equal(t, content, u.Object["spec"])
			assert.Equal(t, map[string]string{"example.com/team": "a"}, u.GetAnnotations())
			assert.NotContains(t, u.Object, "status")
			assert.Empty(t, u.GetLabels())
			assert.Equal(t, content, snap.Maps[0]["spec"])

			// own writes are pruned by the same rules
			require.NoError(t, c.Create(t.Context(), fullPod("b", "n2"), nil))
			changed, err := s.Update(t.Context(), &snap)
			require.NoError(t, err)
			require.True(t, changed)
			require.Len(t, snap.Pods, 2)
			onlyKept(t, snap.Pods[1], "n2")
			assert.NotContains(t, snap.Untyped[1].Object, "status")
			const paths = `apiVersion, kind, metadata.annotations["example.com/team"], metadata.deletionTimestamp, `
			for _, q := range s.Status().Queries {
				assert.Contains(t, q.Form, "only "+paths, q.Name)
			}
		})
	}
}

func onlyKept(t *testing.T, p *kates.Pod, node string) {
	t.Helper()
	assert.Equal(t, node, p.Spec.NodeName)
	require.Len(t, p.Spec.Containers, 2)
	assert.Equal(t, "image:1", p.Spec.Containers[0].Image)
	assert.Equal(t, map[string]string{"example.com/team": "a"}, p.Annotations)
	less := p.DeepCopy()
	less.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: "image:1"}, {Image: "image:2"}}}
	less.Status = corev1.PodStatus{}
	less.ObjectMeta = metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, Generation: p.Generation,
		Annotations: p.Annotations,
	}
	assert.Equal(t, less, p, "all other fields are zero")
	assert.Equal(t, "v1/Pod", p.APIVersion+"/"+p.Kind)
}

func TestProjectionsThatMakeNoSenseAreErrorsAtWatch(t *testing.T) {
	c := katestest.NewClient(t)
	type own struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	type fields struct {
		Pods  []*kates.Pod                   `kates:"pods,optional"`
		Short []*kates.PartialObjectMetadata `kates:"pods"`
		Own   []own                          `kates:"pods"`
		Any   []*kates.Unstructured          `kates:"pods"`
	}
	for _, at := range []struct {
		query kates.Query
		says  string
	}{
		{kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeNme")},
			`query "Pods": its Projection: a Pod has no field spec.nodeNme; there is spec.nodeName`},
		{kates.Query{Name: "Pods", Projection: kates.Keep("spec..a")}, "a path without a name"},
		{kates.Query{Name: "Pods", Projection: kates.Keep()}, "names no field"},
		{kates.Query{Name: "Short", Projection: kates.Keep("metadata.labels")}, "wants metadata only"},
		{kates.Query{Name: "Any", MetadataOnly: true, Projection: kates.Keep("metadata.labels")}, "wants metadata only"},
		{kates.Query{Name: "Own", Projection: kates.Keep("spec")}, "says itself which fields are held"},
		{kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeName"), Key: kates.ByField("spec.nodeNam")},
			"a Pod has no field spec.nodeNam; there is spec.nodeName"},
	} {
		_, err := kates.Watch[fields](t.Context(), c, at.query)
		assert.ErrorContains(t, err, at.says)
	}
	_, err := kates.NewLister[*kates.Pod](t.Context(), c, kates.Query{Projection: kates.Keep("stats")})
	assert.ErrorContains(t, err, "there is status")
}

// hosted and described are what functions of a program read.
type hosted struct {
	Spec struct {
		Hostname string `json:"hostname"`
	} `json:"spec"`
}

type described struct {
	metav1.ObjectMeta `json:"metadata"`
}

// TestAQueryHoldsWhatItsSelectorsAndFunctionsNeed: nobody has to name it.
func TestAQueryHoldsWhatItsSelectorsAndFunctionsNeed(t *testing.T) {
	true_ := true
	pod := fullPod("a", "n1")
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u", Controller: &true_}}
	c := katestest.NewServer(t, katestest.WithObjects(pod)).Client(t)
	keep := kates.Keep("spec.nodeName")
	for name, at := range map[string]struct {
		query                             kates.Query
		labels, annotations, owners, host bool
	}{
		"nothing":         {query: kates.Query{}},
		"labels":          {query: kates.Query{LabelSelector: "app=web"}, labels: true},
		"one of several":  {query: kates.Query{AnyOf: []kates.Selection{{LabelSelector: "app=web"}}}, labels: true},
		"by label":        {query: kates.Query{Key: kates.ByLabel("app")}, labels: true},
		"by annotation":   {query: kates.Query{Key: kates.ByAnnotation("other")}, annotations: true},
		"by owner":        {query: kates.Query{Key: kates.ByOwner("ReplicaSet")}, owners: true},
		"by owner's UID":  {query: kates.Query{Key: kates.ByOwner("", kates.ByUID)}, owners: true},
		"by remote owner": {query: kates.Query{Key: kates.ByRemoteOwner("")}, labels: true, annotations: true},
		"by field":        {query: kates.Query{Key: kates.ByField("metadata.labels.app")}, labels: true},
		"labels changed":  {query: kates.Query{Signal: kates.LabelsChanged}, labels: true},
		"any of":          {query: kates.Query{Signal: kates.AnySignal(kates.GenerationChanged, kates.AnnotationsChanged)}, annotations: true},
		"on metadata":     {query: kates.Query{Key: kates.KeyOf(func(metav1.Object) []string { return nil })}, labels: true, annotations: true, owners: true},
		"on a struct":     {query: kates.Query{Signal: kates.SignalOf(func(_, _ *hosted) bool { return true })}, host: true},
		"on its metadata": {query: kates.Query{Key: kates.KeyOf(func(described) []string { return nil })}, labels: true, annotations: true, owners: true},
		"on the Go type":  {query: kates.Query{Key: kates.KeyOf(func(*kates.Pod) []string { return nil })}},
	} {
		t.Run(name, func(t *testing.T) {
			type pods struct{ Pods []*kates.Pod }
			at.query.Name, at.query.Projection = "Pods", keep
			s, err := kates.Watch[pods](t.Context(), c, at.query)
			require.NoError(t, err)
			var snap pods
			next(t, s, &snap, func() bool { return true })
			require.Len(t, snap.Pods, 1)
			assert.Equal(t, at.labels, snap.Pods[0].Labels["app"] == "web")
			assert.Equal(t, at.annotations, snap.Pods[0].Annotations["other"] == "b")
			assert.Equal(t, at.owners, len(snap.Pods[0].OwnerReferences) == 1)
			assert.Equal(t, at.host, snap.Pods[0].Spec.Hostname == "host")
			assert.ErrorIs(t, c.Update(t.Context(), snap.Pods[0].DeepCopy(), nil), kates.ErrPartial)
		})
	}
	type found struct{ Pods kates.Lookup[*kates.Pod] }
	s, err := kates.Watch[found](t.Context(), c, kates.Query{Name: "Pods", Projection: keep})
	require.NoError(t, err)
	var snap found
	next(t, s, &snap, func() bool { return true })
	p, err := snap.Pods.Get("default", "a")
	require.NoError(t, err)
	assert.Equal(t, "web", p.Labels["app"])

	l, err := kates.NewLister[*kates.Pod](t.Context(), c, kates.Query{Projection: keep})
	require.NoError(t, err)
	defer l.Close()
	p, err = l.Get("default", "a")
	require.NoError(t, err)
	assert.Equal(t, "web", p.Labels["app"])
}

// TestEqualProjectionsShareAWatch: however they are written.
func TestEqualProjectionsShareAWatch(t *testing.T) {
	c := katestest.NewServer(t, katestest.WithObjects(fullPod("a", "n1"))).Client(t, kates.Tuning{ShareWider: true})
	type pods struct{ Whole, One, Same, Other []*kates.Pod }
	s, err := kates.Watch[pods](t.Context(), c,
		kates.Query{Name: "Whole"},
		kates.Query{Name: "One", Projection: kates.Keep("spec.nodeName", "metadata.annotations")},
		kates.Query{Name: "Same", Projection: kates.Keep("metadata.annotations", "metadata.annotations.other", "spec.nodeName")},
		kates.Query{Name: "Other", Projection: kates.Keep("spec.nodeName")})
	require.NoError(t, err)
	var snap pods
	next(t, s, &snap, func() bool { return true })
	assert.Same(t, snap.One[0], snap.Same[0])
	assert.NotSame(t, snap.One[0], snap.Other[0])
	assert.Equal(t, "host", snap.Whole[0].Spec.Hostname)
	assert.Empty(t, snap.One[0].Spec.Hostname)
	assert.Equal(t, "b", snap.One[0].Annotations["other"])
	assert.Empty(t, snap.Other[0].Annotations)
}

// TestAWatchOfAPartServesNoOtherQuery: it has too little of the objects, and cannot judge labels.
func TestAWatchOfAPartServesNoOtherQuery(t *testing.T) {
	c := katestest.NewServer(t, katestest.WithObjects(fullPod("a", "n1"))).Client(t, kates.Tuning{ShareWider: true})
	type pods struct{ Pods []*kates.Pod }
	part, err := kates.Watch[pods](t.Context(), c, kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeName")})
	require.NoError(t, err)
	next(t, part, new(pods), func() bool { return true })
	type others struct {
		Short    []*kates.PartialObjectMetadata `kates:"pods"`
		Labelled []*kates.Pod
	}
	s, err := kates.Watch[others](t.Context(), c, kates.Query{Name: "Labelled", LabelSelector: "app=web"})
	require.NoError(t, err)
	var snap others
	next(t, s, &snap, func() bool { return true })
	require.Len(t, snap.Short, 1)
	assert.Equal(t, "web", snap.Short[0].Labels["app"])
	require.Len(t, snap.Labelled, 1)
	assert.Equal(t, "host", snap.Labelled[0].Spec.Hostname)
}

// TestG8AnObjectThatDoesNotDecodeIsInvalidWhereAPartIsHeld: what is not held is not looked at.
func TestG8AnObjectThatDoesNotDecodeIsInvalidWhereAPartIsHeld(t *testing.T) {
	bad := &kates.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "bad"},
		"data": map[string]any{"kept": []any{"a list"}},
	}}
	fine := bad.DeepCopy()
	fine.SetName("fine")
	fine.Object["data"] = map[string]any{"kept": "yes", "dropped": []any{"a list"}}
	c := katestest.NewClient(t, bad, fine)
	type configMaps struct {
		ConfigMaps []*kates.ConfigMap
		Invalid    []kates.Invalid
	}
	s, err := kates.Watch[configMaps](t.Context(), c, kates.Query{Name: "ConfigMaps", Projection: kates.Keep("data.kept")})
	require.NoError(t, err)
	var snap configMaps
	next(t, s, &snap, func() bool { return true })
	require.Len(t, snap.ConfigMaps, 1)
	assert.Equal(t, map[string]string{"kept": "yes"}, snap.ConfigMaps[0].Data)
	require.Len(t, snap.Invalid, 1)
	assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
}

// TestATransformAndPredicatesGetWhatIsHeld: the projection comes first.
func TestATransformAndPredicatesGetWhatIsHeld(t *testing.T) {
	for name, c := range keepClients(t, fullPod("a", "n1")) {
		t.Run(name, func(t *testing.T) {
			type pods struct{ Pods []*kates.Pod }
			transform := kates.TransformOf(func(p *kates.Pod) error {
				assert.Empty(t, p.Spec.Hostname)
				p.Spec.NodeName += "-seen"
				return nil
			})
			s, err := kates.Watch[pods](t.Context(), c,
				kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeName"), Transform: transform})
			require.NoError(t, err)
			var snap pods
			next(t, s, &snap, func() bool { return true })
			assert.Equal(t, "n1-seen", snap.Pods[0].Spec.NodeName)
			require.NoError(t, c.Create(t.Context(), fullPod("b", "n2"), nil))
			_, err = s.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.Equal(t, "n2-seen", snap.Pods[1].Spec.NodeName)
			assert.Empty(t, snap.Pods[1].Spec.Hostname)
		})
	}
}

// TestG4OwnWritesAndEventsAreShownAsFarAsTheyAreHeld: whichever comes first, and in any encoding.
func TestG4OwnWritesAndEventsAreShownAsFarAsTheyAreHeld(t *testing.T) {
	with := func(name, version string) *kates.ConfigMap {
		cm := versioned(name, version)
		cm.Data["dropped"] = "d"
		return cm
	}
	for _, protobuf := range []bool{true, false} {
		s := &wireServer{protobuf: protobuf, objects: []any{with("listed", "5"), broken{versioned("bad", "6")}}}
		c := s.client(t)
		w, err := kates.Watch[typedMaps](t.Context(), c, kates.Query{Name: "ConfigMaps", Projection: kates.Keep("data.k")})
		require.NoError(t, err)
		var snap typedMaps
		next(t, w, &snap, func() bool { return true })
		require.Len(t, snap.Invalid, 1)
		assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
		require.NoError(t, c.Observe(t.Context(), with("listed", "8")))
		changed, err := w.Update(t.Context(), &snap)
		require.NoError(t, err)
		require.True(t, changed)
		written := snap.ConfigMaps[0]
		s.send("MODIFIED", with("listed", "8"))
		s.send("ADDED", with("watched", "9"))
		next(t, w, &snap, func() bool { return len(snap.ConfigMaps) == 2 })
		assert.Same(t, written, snap.ConfigMaps[0], "the event of an own write shows nothing new")
		assert.Equal(t, []string{"listed@8", "watched@9"}, namesOf(snap.ConfigMaps))
		for _, cm := range snap.ConfigMaps {
			assert.Equal(t, map[string]string{"k": "v"}, cm.Data)
			assert.Empty(t, cm.Labels)
		}
	}
}
