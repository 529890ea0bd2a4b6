package applied

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func given() *appsv1.Deployment {
	replicas := int32(0)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "b"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": ""}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "i", Args: []string{"", "b"},
				Ports:     []corev1.ContainerPort{{Name: "p", ContainerPort: 80}, {ContainerPort: 53}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1000m")}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("p")},
				}},
			}}}},
		},
	}
}

// shown is the given object as a server shows it.
func shown() *appsv1.Deployment {
	d := given()
	d.UID, d.ResourceVersion, d.CreationTimestamp = "u", "5", metav1.NewTime(time.Unix(1, 0))
	d.Labels = nil // metadata does not count
	d.Status.Replicas = 3
	c := &d.Spec.Template.Spec.Containers[0]
	c.Ports[0].Protocol, c.Ports[1].Protocol = corev1.ProtocolTCP, corev1.ProtocolTCP
	c.Resources.Requests["cpu"] = resource.MustParse("1")
	c.LivenessProbe.TimeoutSeconds = 1
	d.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	return d
}

func TestALiveObjectHasTheGivenValuesWithWhatTheServerAdds(t *testing.T) {
	assert.True(t, HasValues(given(), shown()))
	container := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	for name, change := range map[string]func(d *appsv1.Deployment){
		"another value":         func(d *appsv1.Deployment) { container(d).Image = "j" },
		"more in a selector":    func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["more"] = "theirs" },
		"no value":              func(d *appsv1.Deployment) { container(d).Image = "" },
		"not the zero":          func(d *appsv1.Deployment) { *d.Spec.Replicas = 1 },
		"no zero":               func(d *appsv1.Deployment) { d.Spec.Replicas = nil },
		"no entry of a map":     func(d *appsv1.Deployment) { delete(d.Spec.Selector.MatchLabels, "app") },
		"another zero entry":    func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "x" },
		"no amount":             func(d *appsv1.Deployment) { delete(container(d).Resources.Requests, "cpu") },
		"another amount":        func(d *appsv1.Deployment) { container(d).Resources.Requests["cpu"] = resource.MustParse("2") },
		"an item more":          func(d *appsv1.Deployment) { container(d).Args = append(container(d).Args, "c") },
		"an item less":          func(d *appsv1.Deployment) { container(d).Ports = container(d).Ports[:1] },
		"another empty item":    func(d *appsv1.Deployment) { container(d).Args[0] = "x" },
		"items in other orders": func(d *appsv1.Deployment) { p := container(d).Ports; p[0], p[1] = p[1], p[0] },
		"another port":          func(d *appsv1.Deployment) { container(d).LivenessProbe.HTTPGet.Port = intstr.FromInt32(80) },
		"no probe":              func(d *appsv1.Deployment) { container(d).LivenessProbe = nil },
	} {
		d := shown()
		change(d)
		assert.False(t, HasValues(given(), d), name)
	}
	for _, other := range []Object{&corev1.Pod{}, &unstructured.Unstructured{}, (*appsv1.Deployment)(nil), &metav1.PartialObjectMetadata{}} {
		assert.False(t, HasValues(given(), other), "%T", other)
	}
	with := given()
	with.Status.Replicas = 4
	assert.False(t, HasValues(with, shown()), "a status counts")
	of := func(v string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}, "spec": v}}
	}
	assert.False(t, HasValues(of("a"), of("a")), "nothing is known of the type's fields")
}

// soleOwner are the fields and the metadata of an object with one owner.
func soleOwner(uid string) (*corev1.ConfigMap, *unstructured.Unstructured) {
	o := mapAt("u", "5")
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "root", UID: "root"}}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "x", "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": uid}},
		},
		"data": map[string]any{"k": "v"},
	}}
	return o, u
}

func TestAnEntryOwnsJustWhatItsFieldsOwn(t *testing.T) {
	owned := func(fields string, o *corev1.ConfigMap, u *unstructured.Unstructured) bool {
		var e Entries
		e.Put(o, []byte(fields))
		entry, known := e.Of(o)
		require.True(t, known)
		check := func() *Check {
			return &Check{
				Live: func() map[string]any { return u.Object }, Detail: ShownContent,
				Whole: func(fieldpath.Path, any) bool { return false },
			}
		}
		want := check().OwnsJust([]byte(fields), u)
		for range 2 { // the second time the set is known
			assert.Equal(t, want, check().OwnsEntry(entry, u), fields)
		}
		return want
	}
	const owner = `{"f:data":{"f:k":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"root\"}":{}}}}`
	o, u := soleOwner("root")
	assert.True(t, owned(owner, o, u))
	assert.False(t, owned(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"root\"}":{}}}}`, o, u), "not the data")
	assert.False(t, owned(`{"f:data":{"f:k":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"owner\"}":{}}}}`, o, u))
	assert.False(t, owned(`{"f:data":{"f:k":{}},"f:metadata":{}}`, o, u))
	assert.False(t, owned(`{"f:data":{"f:root":{}},"f:metadata":{}}`, o, u), "the UID is not that of the owner")
	assert.False(t, owned(`root`, o, u))
	_, other := soleOwner("other")
	assert.False(t, owned(owner, o, other), "it is to have another owner")
	_, stands := soleOwner(theOwner)
	assert.False(t, owned(owner, o, stands), "what stands for the owner is no owner")

	data := u.DeepCopy()
	data.Object["data"] = map[string]any{"root": "v"} // a key that is the UID of the owner
	assert.True(t, owned(`{"f:data":{"f:root":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"root\"}":{}}}}`, o, data))
	two := o.DeepCopy()
	two.OwnerReferences = append(two.OwnerReferences, metav1.OwnerReference{UID: "theirs"})
	assert.True(t, owned(owner, two, u), "others may own it, too")
}

func TestG3TheSetsOfFieldsAreBounded(t *testing.T) {
	var e Entries
	for i := range 3 * mostSets {
		o, _ := soleOwner("root")
		e.Put(o, []byte(`{"f:`+string(rune('a'+i%26))+string(rune('a'+i/26))+`":{},"f:x":{"f:root":{}}}`))
		entry, _ := e.Of(o)
		require.NotNil(t, entry.shared())
	}
	assert.LessOrEqual(t, len(e.sets), mostSets)
	assert.NotEmpty(t, e.sets)
}

func TestTheOrderOfOwnersIsNotSeenFromTheValuesOfAnObject(t *testing.T) {
	_, u := soleOwner("a")
	metadata := u.Object["metadata"].(map[string]any)
	reference := func(uid string) any { return map[string]any{"uid": uid} }
	metadata["ownerReferences"] = []any{reference("a"), reference("b")}
	live := u.DeepCopy()
	live.Object["metadata"].(map[string]any)["ownerReferences"] = []any{reference("b"), reference("a")}
	check := func(live *unstructured.Unstructured) bool {
		return (&Check{
			Live: func() map[string]any { return live.Object }, Detail: ShownContent, AsGiven: true,
			Whole: func(fieldpath.Path, any) bool { return false },
		}).OwnsJust([]byte(`{"f:data":{"f:k":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"a\"}":{},"k:{\"uid\":\"b\"}":{}}}}`), u)
	}
	assert.True(t, check(u))
	assert.False(t, check(live))
}
