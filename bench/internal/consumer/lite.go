package consumer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// NamedLite has what names an object: two fields.
type NamedLite struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// PodLite has six fields of a pod: what a program that routes to pods reads.
type PodLite struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		PodIP  string `json:"podIP"`
		HostIP string `json:"hostIP"`
		Phase  string `json:"phase"`
	} `json:"status"`
}

// PodListed has twelve fields of a pod: what a program that lists pods for people reads.
type PodListed struct {
	Metadata struct {
		Name              string      `json:"name"`
		Namespace         string      `json:"namespace"`
		UID               string      `json:"uid"`
		CreationTimestamp metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName           string `json:"nodeName"`
		ServiceAccountName string `json:"serviceAccountName"`
		PriorityClassName  string `json:"priorityClassName"`
		Containers         []struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		PodIP  string `json:"podIP"`
		HostIP string `json:"hostIP"`
		Phase  string `json:"phase"`
	} `json:"status"`
}

// PodScheduled has what a scheduler reads of a pod: its labels, owners, containers with their
// resources, and conditions.
type PodScheduled struct {
	Metadata struct {
		Name            string                  `json:"name"`
		Namespace       string                  `json:"namespace"`
		UID             string                  `json:"uid"`
		Labels          map[string]string       `json:"labels"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName    string             `json:"nodeName"`
		Containers  []kates.Container  `json:"containers"`
		Tolerations []kates.Toleration `json:"tolerations"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// lite has the same kinds as Typed, with some fields of each pod, and the names of the others.
type lite[P any] struct {
	Pods       []*P         `kates:"pods"`
	Services   []*NamedLite `kates:"services"`
	ConfigMaps []*NamedLite `kates:"configmaps"`
}

// newKatesLite makes a consumer of pods of a struct type. Its objects have no marks.
func newKatesLite[P any]() Consumer {
	return &snapshotter[lite[P]]{view: func(l *lite[P]) View {
		return View{Objects: len(l.Pods) + len(l.Services) + len(l.ConfigMaps), All: chain()}
	}}
}

// metadataOnly has the same kinds, of which the server sends the metadata alone.
type metadataOnly struct {
	Pods       []*metav1.PartialObjectMetadata `kates:"pods"`
	Services   []*metav1.PartialObjectMetadata `kates:"services"`
	ConfigMaps []*metav1.PartialObjectMetadata `kates:"configmaps"`
}

func newKatesMetadata() Consumer {
	return &snapshotter[metadataOnly]{open: openPods[*metav1.PartialObjectMetadata], view: func(m *metadataOnly) View {
		return View{
			Objects: len(m.Pods) + len(m.Services) + len(m.ConfigMaps),
			All:     chain(objects(m.Pods), objects(m.Services), objects(m.ConfigMaps)),
		}
	}}
}
