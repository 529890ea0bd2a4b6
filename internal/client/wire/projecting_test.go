package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// sixFields is what a program may read of a pod.
type sixFields struct {
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

var podKind = objects.Resource{
	GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Namespaced: true,
	Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
}

func projecting(beside objects.Beside) *decoder {
	return newProjecting(podKind, objects.Projection{Into: reflect.TypeFor[sixFields](), Beside: beside}, scheme.Scheme)
}

// podIn is a pod in an encoding, with a name, UID and version of its own.
func podIn(t testing.TB, i int, e frames.Encoding) []byte {
	t.Helper()
	p := realistic.Pod(i)
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Generation = 7
	p.Name, p.UID, p.ResourceVersion = fmt.Sprintf("web-7c9fb6d5c8-%05d", i), types.UID(fmt.Sprintf("0c5e7f8a-53b5-4b0c-9f37-%012d", i)), fmt.Sprint(1e8+i)
	raw, err := p.Marshal()
	if e == frames.JSON {
		raw, err = json.Marshal(p)
	}
	require.NoError(t, err)
	return raw
}

// sharingDecoder decodes pods for a stream whose objects nobody writes to.
func sharingDecoder() *decoder {
	s := &typedSource{decoder: podDecoder()}
	s.Shared()
	return s.decoder
}
