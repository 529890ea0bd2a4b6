package kates

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/frames"
)

// realisticPod is the i-th of many: two containers, a Deployment's labels and mounts, status, two managers.
func realisticPod(i int) *corev1.Pod {
	app, node := fmt.Sprint("app-", i%200), fmt.Sprint("node-", i%500, ".internal.example.com")
	now := metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-7d9c5b7f%02d-%05d", app, i%7, i), Namespace: fmt.Sprint("team-", i%50), GenerateName: app + "-7d9c5b7f-",
		UID: types.UID(fmt.Sprintf("6f1d2c3b-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: now,
		Labels: map[string]string{
			"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app + "-prod", "app.kubernetes.io/managed-by": "Helm",
			"pod-template-hash": "7d9c5b7f", "team": fmt.Sprint("team-", i%50), "topology.kubernetes.io/zone": "eu-central-1a",
		},
		Annotations: map[string]string{
			"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": strings.Repeat("0123456789abcdef", 4),
			"kubectl.kubernetes.io/restartedAt": "2024-01-01T00:00:00Z",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9c5b7f", UID: types.UID(fmt.Sprintf("7f1d2c3b-0000-4000-8000-%012d", i%200)),
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		var owned strings.Builder
		for f := range 22 {
			fmt.Fprintf(&owned, `,"f:%s-field-%d":{".":{},"f:value":{}}`, manager[:4], f)
		}
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}` + owned.String() + `}`)},
		})
	}
	p.Spec = corev1.PodSpec{
		NodeName: node, ServiceAccountName: app, DeprecatedServiceAccount: app, RestartPolicy: "Always", DNSPolicy: "ClusterFirst", SchedulerName: "default-scheduler",
		TerminationGracePeriodSeconds: ptr.To[int64](30), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, Priority: ptr.To[int32](0),
		EnableServiceLinks: ptr.To(true), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)},
		},
		Volumes: []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr.To[int32](420), Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}}},
		}}}},
	}
	p.Status = corev1.PodStatus{Phase: "Running", HostIP: fmt.Sprint("10.0.0.", i%250), PodIP: fmt.Sprintf("10.%d.%d.7", i/250, i%250), QOSClass: "Burstable", StartTime: &now}
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	for _, kind := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: now})
	}
	for c := range 2 {
		image := fmt.Sprintf("registry.example.com/%s/%s:v1.2.%d", p.Namespace, app, c)
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", c), Image: image, ImagePullPolicy: "IfNotPresent", TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File",
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			Env:   []corev1.EnvVar{{Name: "APP_NAME", Value: app}, {Name: "LOG_LEVEL", Value: "info"}, {Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
			},
			VolumeMounts:  []corev1.VolumeMount{{Name: "kube-api-access", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: "HTTP"}}, PeriodSeconds: 10},
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprint("c", c), Ready: true, Started: ptr.To(true), Image: image, ImageID: image + "@sha256:" + strings.Repeat(fmt.Sprintf("%02x", i%200), 32),
			ContainerID: fmt.Sprintf("containerd://%064d", i*2+c), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return p
}

func podDecoder() *decoder {
	r := accumulator.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespaced: true}
	r.GroupVersionResource = corev1.SchemeGroupVersion.WithResource("pods")
	return newDecoder(r, reflect.TypeFor[corev1.Pod](), false)
}

// BenchmarkDecode decodes realistic pods; B/pod is what stays of each on the heap.
func BenchmarkDecode(b *testing.B) {
	const n = 10_000
	for _, e := range []frames.Encoding{frames.Protobuf, frames.JSON} {
		raw := make([][]byte, n)
		size := 0
		for i := range raw {
			raw[i] = encoded(b, realisticPod(i), e)
			size += len(raw[i])
		}
		for _, mode := range []string{"kept", "dropped", "interned"} {
			b.Run(string(e)+"/"+mode, func(b *testing.B) {
				b.ReportAllocs()
				var before, after runtime.MemStats
				for b.Loop() {
					b.StopTimer()
					d := podDecoder()
					d.keep = mode == "kept"
					held := make([]accumulator.Object, n)
					scratch := make([]byte, 0, 64<<10)
					runtime.GC()
					runtime.ReadMemStats(&before)
					b.StartTimer()
					for i := range raw {
						held[i], _ = d.decode(append(scratch, raw[i]...), e)
						if mode == "interned" {
							d.Compact(held[i], true)
						}
					}
					b.StopTimer()
					runtime.GC()
					runtime.GC()
					runtime.ReadMemStats(&after)
					b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, "B/pod")
					runtime.KeepAlive(held)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
				b.ReportMetric(float64(size)/n, "wire-B/pod")
			})
		}
	}
}

func encoded(t testing.TB, p *corev1.Pod, e frames.Encoding) []byte {
	t.Helper()
	if e == frames.Protobuf {
		raw, err := p.Marshal()
		require.NoError(t, err)
		return raw
	}
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	return raw
}
