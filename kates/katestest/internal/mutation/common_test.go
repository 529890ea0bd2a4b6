package mutation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/engine/collect"
)

func TestG10AWriteToAPartThatObjectsShareIsSaidToBeOne(t *testing.T) {
	d := New(Default)
	w := d.Watching("snap")
	template := []corev1.Container{{Name: "c", Image: "v1"}}
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "apart"} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: template}}
		if p.Name = name; name == "apart" {
			p.Spec.Containers = []corev1.Container{template[0]}
		}
		w.Shown("Pods", p, p)
		pods = append(pods, p)
	}
	pods[0].Spec.Containers[0].Image = "mine"
	pods[2].Spec.Containers[0].Image = "mine"
	w.Delivered(collect.Delivery{Moment: collect.NewSnapshot})
	first := `somebody wrote to a shared object: Pod a of query "Pods": spec.containers[0].image: first seen in snapshot 1 of snap; ` +
		`unchanged when it was handed out first`
	assert.Equal(t, []string{
		first,
		`somebody wrote to a shared object: Pod b of query "Pods": spec.containers[0].image: first seen in snapshot 1 of snap; ` +
			`unchanged when it was handed out first; it shares memory with Pod a of query "Pods", where the same was seen: that may be one write`,
		`somebody wrote to a shared object: Pod apart of query "Pods": spec.containers[0].image: first seen in snapshot 1 of snap; ` +
			`unchanged when it was handed out first`,
	}, d.foundSoFar())
}
