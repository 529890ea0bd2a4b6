package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// parsed is the content of a text in YAML.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	c := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(raw, &c))
	return c
}

// has compares the fields at paths: "a.b=c" in YAML, "a.b" for a field that is not there.
func has(t *testing.T, c map[string]any, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		path, text, there := strings.Cut(w, "=")
		is, found, err := unstructured.NestedFieldNoCopy(c, strings.Split(path, ".")...)
		require.NoError(t, err, w)
		require.Equal(t, there, found, "%s: %v", w, is)
		if there {
			assert.Equal(t, parsed(t, "{is: "+text+"}")["is"], is, w)
		}
	}
}

// builtIn is a built-in kind by its version and name.
func builtIn(t *testing.T, version, name string) *Kind {
	t.Helper()
	set := NewSet(BuiltIn(scheme.Scheme, slices.Concat(OfScheme(scheme.Scheme), Unschemed()))...)
	k := set.OfKind(schema.FromAPIVersionAndKind(version, name))
	require.NotNil(t, k, name)
	return k
}

const filledSpec = "dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30"

func TestDefaultsOfBuiltInKindsAreFilledIn(t *testing.T) {
	for _, c := range []struct {
		version, kind, sent string
		wanted              []string
	}{
		{"v1", "Pod", "{spec: {}}", []string{"spec={" + filledSpec + ", enableServiceLinks: true}"}},
		{"v1", "Pod", "{status: {podIP: a}}", []string{"spec", "status.podIPs=[{ip: a}]"}},
		{"v1", "Pod", "{status: {podIPs: [{ip: a}, {ip: b}]}}", []string{"status.podIP=a"}},
		{"v1", "Pod", "{spec: {serviceAccountName: sa, containers: [{image: a, resources: {limits: {cpu: 1}}}]}}", []string{"spec.serviceAccount=sa",
			"spec.containers=[{image: a, imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {limits: {cpu: 1}, requests: {cpu: 1}}}]"}},
		{"v1", "PodTemplate", "{template: {spec: {}}}", []string{"template.spec={" + filledSpec + "}"}},
		{"v1", "ReplicationController", "{spec: {}}", []string{"spec={replicas: 1}"}},
		{"apps/v1", "ReplicaSet", "{spec: {replicas: 0}}", []string{"spec={replicas: 0}"}},
		{"apps/v1", "Deployment", "{}", []string{"spec={replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}}"}},
		{"apps/v1", "Deployment", "{spec: {strategy: {type: Recreate}}}", []string{"spec.strategy={type: Recreate}"}},
		{"apps/v1", "Deployment", "{spec: {strategy: 5}}", []string{"spec.strategy=5"}},
		{"apps/v1", "StatefulSet", "{spec: {volumeClaimTemplates: [{}]}}", []string{"spec.updateStrategy={type: RollingUpdate, rollingUpdate: {partition: 0}}", "spec.podManagementPolicy=OrderedReady",
			"spec.persistentVolumeClaimRetentionPolicy={whenDeleted: Retain, whenScaled: Retain}", "spec.volumeClaimTemplates=[{spec: {volumeMode: Filesystem}}]"}},
		{"apps/v1", "DaemonSet", "{spec: {template: {spec: {}}}}", []string{"spec.updateStrategy={type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}", "spec.template.spec={" + filledSpec + "}"}},
		{"batch/v1", "Job", "{spec: {}}", []string{"spec={completions: 1, parallelism: 1, backoffLimit: 6, completionMode: NonIndexed, suspend: false, podReplacementPolicy: TerminatingOrFailed}"}},
		{"batch/v1", "Job", "{spec: {parallelism: 2}}", []string{"spec.completions"}},
		{"batch/v1", "Job", "{}", []string{"spec"}},
		{"batch/v1", "CronJob", "{}", []string{"spec={concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1}"}},
		{"v1", "PersistentVolume", "{}", []string{"spec={persistentVolumeReclaimPolicy: Retain, volumeMode: Filesystem}"}},
		{"v1", "PersistentVolumeClaim", "{}", []string{"spec={volumeMode: Filesystem}"}},
		{"v1", "Endpoints", "{subsets: [{ports: [{port: 1}]}]}", []string{"subsets=[{ports: [{port: 1, protocol: TCP}]}]"}},
		{"v1", "Secret", "{stringData: {a: b, n: 1}, data: {c: ZA==}}", []string{"type=Opaque", "stringData", "data={a: Yg==, c: ZA==}"}},
		{"v1", "Namespace", "{metadata: {name: a}}", []string{"metadata.labels={kubernetes.io/metadata.name: a}"}},
		{"v1", "Namespace", "{metadata: {generateName: a}}", []string{"metadata.labels"}},
		{"v1", "Service", "{spec: {ports: [{port: 80}, {port: 81, targetPort: web}]}}", []string{
			"spec={type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ports: [{port: 80, targetPort: 80, protocol: TCP}, {port: 81, targetPort: web, protocol: TCP}]}"}},
		{"v1", "Service", "{spec: {type: LoadBalancer, sessionAffinity: ClientIP}}", []string{
			"spec.externalTrafficPolicy=Cluster", "spec.allocateLoadBalancerNodePorts=true", "spec.sessionAffinityConfig={clientIP: {timeoutSeconds: 10800}}"}},
		{"v1", "Service", "{spec: {type: ExternalName}}", []string{"spec={type: ExternalName, sessionAffinity: None}"}},
		{"v1", "Service", "{}", []string{"spec"}},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "{spec: {names: {kind: Thing}}}", []string{
			"spec.conversion={strategy: None}", "spec.names={kind: Thing, singular: thing, listKind: ThingList}"}},
		{"v1", "ConfigMap", "{}", []string{"data"}},
	} {
		is := parsed(t, c.sent)
		Fill(builtIn(t, c.version, c.kind), is)
		has(t, is, c.wanted...)
	}
}

func TestDefaultsOfContainersAndVolumesAreFilledIn(t *testing.T) {
	c := parsed(t, `{spec: {
  initContainers: [{image: "host:5000/a:1", ports: [{}], env: [{valueFrom: {fieldRef: {}}}, {}],
    livenessProbe: {httpGet: {}}, readinessProbe: {grpc: {}, periodSeconds: 5}}],
  ephemeralContainers: [{image: "a:latest"}], containers: [{image: "a@sha256:1"}, {image: "host:5000/a"}],
  volumes: [{name: a}, {name: a, configMap: {}}, {name: a, hostPath: {}}, {name: a, secret: {defaultMode: 1}}]}}`)
	Fill(builtIn(t, "v1", "Pod"), c)
	const ends = "terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File"
	const probe = "timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3"
	has(t, c,
		`spec.initContainers=[{image: "host:5000/a:1", imagePullPolicy: IfNotPresent, ports: [{protocol: TCP}], env: [{valueFrom: {fieldRef: {apiVersion: v1}}}, {}], `+ends+
			`, livenessProbe: {`+probe+`, periodSeconds: 10, httpGet: {path: /, scheme: HTTP}}, readinessProbe: {`+probe+`, periodSeconds: 5, grpc: {service: ""}}}]`,
		`spec.ephemeralContainers=[{image: "a:latest", imagePullPolicy: Always, `+ends+`}]`,
		`spec.containers=[{image: "a@sha256:1", imagePullPolicy: IfNotPresent, `+ends+`}, {image: "host:5000/a", imagePullPolicy: Always, `+ends+`}]`,
		"spec.volumes=[{name: a, emptyDir: {}}, {name: a, configMap: {defaultMode: 420}}, {name: a, hostPath: {type: ''}}, {name: a, secret: {defaultMode: 1}}]")
}

func TestAPodToleratesANodeInTroubleForFiveMinutesUnlessItSaysOtherwise(t *testing.T) {
	const notReady = "{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}"
	const unreachable = "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}"
	for own, want := range map[string]string{
		"": notReady + "," + unreachable,
		"{key: node.kubernetes.io/not-ready, effect: NoExecute}": "{key: node.kubernetes.io/not-ready, effect: NoExecute}," + unreachable,
		"{operator: Exists}": "{operator: Exists}",
		"{key: node.kubernetes.io/not-ready, effect: NoSchedule}": "{key: node.kubernetes.io/not-ready, effect: NoSchedule}," + notReady + "," + unreachable,
	} {
		c := parsed(t, "{spec: {tolerations: ["+own+"]}}")
		Admit(c)
		has(t, c, "spec.tolerations=["+want+"]", "spec.priority=0", "spec.preemptionPolicy=PreemptLowerPriority")
	}
	empty := map[string]any{}
	Admit(empty)
	assert.Empty(t, empty)
}

func TestAServiceKeepsItsFamiliesOfAddresses(t *testing.T) {
	for _, c := range []struct{ before, sent, want string }{
		{"", "{spec: {}}", "{ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}"},
		{"{spec: {ipFamilies: [IPv6], ipFamilyPolicy: PreferDualStack}}", "{spec: {}}", "{ipFamilies: [IPv6], ipFamilyPolicy: PreferDualStack}"},
		{"{spec: {ipFamilies: [IPv6]}}", "{spec: {ipFamilies: [IPv4]}}", "{ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}"},
		{"", "{spec: {type: ExternalName}}", "{type: ExternalName}"},
	} {
		var before map[string]any
		if c.before != "" {
			before = parsed(t, c.before)
		}
		is := parsed(t, c.sent)
		Allocate(is, before)
		has(t, is, "spec="+c.want)
	}
}

// TestAVersionOfABuiltInKindShowsWhatAnotherOneHasStored shows what is stored, and stores it again.
func TestAVersionOfABuiltInKindShowsWhatAnotherOneHasStored(t *testing.T) {
	const memory, scale = `[{"resource":{"name":"memory"}}]`, `{"scaleUp":{}}`
	for _, c := range []struct {
		version, kind, as, sent, stored, shown string
	}{
		{"events.k8s.io/v1", "Event", "v1", "{note: m, regarding: {name: a}, deprecatedCount: 2}",
			"{message: m, involvedObject: {name: a}, count: 2, reportingComponent: '', reportingInstance: ''}", ""},
		{"events.k8s.io/v1", "Event", "v1", "{reportingController: c, reportingInstance: i}", "{reportingComponent: c, reportingInstance: i}", ""},
		{"autoscaling/v1", "HorizontalPodAutoscaler", "autoscaling/v2", "{spec: {targetCPUUtilizationPercentage: 50}, status: {currentCPUUtilizationPercentage: 40, currentReplicas: 0}}",
			"{spec: {metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}, status: {currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 40}}}]}}", ""},
		{"autoscaling/v1", "HorizontalPodAutoscaler", "autoscaling/v2", "{metadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: '" + memory + "', autoscaling.alpha.kubernetes.io/behavior: '" + scale + "'}}, spec: {}}",
			"{metadata: {}, spec: {metrics: [{resource: {name: memory}}], behavior: {scaleUp: {}}}}", ""},
		{"autoscaling/v1", "HorizontalPodAutoscaler", "autoscaling/v2", "{metadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: mine}}, spec: {}}",
			"{metadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: mine}}, spec: {}}", ""},
		{"autoscaling/v1", "HorizontalPodAutoscaler", "autoscaling/v2", "{spec: {}, status: {}}", "{spec: {}, status: {currentMetrics: null}}", "{spec: {}, status: {currentReplicas: 0}}"},
	} {
		k := builtIn(t, c.version, c.kind)
		stored := k.Stored(parsed(t, c.sent))
		want := parsed(t, c.stored)
		want["apiVersion"] = c.as
		assert.Equal(t, want, stored, c.sent)
		before := runtime.DeepCopyJSON(stored)
		shown := k.Shown(stored)
		assert.Equal(t, before, stored, "what is stored is not changed")
		delete(shown, "apiVersion")
		if c.shown == "" {
			c.shown = c.sent
		}
		assert.Equal(t, parsed(t, c.shown), shown)
	}
	k := builtIn(t, "v1", "ConfigMap")
	c := parsed(t, "{data: {a: b}}")
	assert.Equal(t, c, k.Shown(k.Stored(c)))
}
