package kinds

import (
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Fill fills in what an API server fills into an object of a built-in kind: the defaults of the
// API reference for workloads, services, volumes, secrets and events. Others are stored as sent.
func Fill(k *Kind, c map[string]any) {
	if fill := fills[k.GroupKind().String()]; fill != nil {
		fill(c)
	}
}

var fills = map[string]func(map[string]any){
	"CronJob.batch": fillCronJob,
	"CustomResourceDefinition.apiextensions.k8s.io": fillDefinition,
	"DaemonSet.apps":        fillDaemonSet,
	"Deployment.apps":       fillDeployment,
	"Endpoints":             fillEndpoints,
	"Namespace":             Label,
	"Job.batch":             func(c map[string]any) { fillJob(at(c, "spec")) },
	"PersistentVolume":      fillVolume,
	"PersistentVolumeClaim": func(c map[string]any) { set(c, "Filesystem", "spec", "volumeMode") },
	"Pod":                   fillPod,
	"PodTemplate":           func(c map[string]any) { fillPodSpec(at(c, "template", "spec")) },
	"ReplicaSet.apps":       fillReplicas,
	"ReplicationController": fillReplicas,
	"Secret":                fillSecret,
	"Service":               fillService,
	"StatefulSet.apps":      fillStatefulSet,
}

func fillDefinition(c map[string]any) {
	set(c, "None", "spec", "conversion", "strategy")
	names := at(c, "spec", "names")
	if kind, ok := names["kind"].(string); ok && kind != "" {
		set(names, strings.ToLower(kind), "singular")
		set(names, kind+"List", "listKind")
	}
}

// Label gives a namespace the label with its name.
func Label(c map[string]any) {
	o := unstructured.Unstructured{Object: c}
	if o.GetName() == "" {
		return // it is generated later
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = o.GetName()
	o.SetLabels(labels)
}

// at returns the object at a path, nil if there is none.
func at(c map[string]any, path ...string) map[string]any {
	for _, name := range path {
		c, _ = c[name].(map[string]any)
	}
	return c
}

// set sets a field that is not there. It makes the objects on the way.
func set(c map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, ok := c[name].(map[string]any)
		if !ok {
			if c[name] != nil {
				return // it is no object: its type is wrong
			}
			next = map[string]any{}
			c[name] = next
		}
		c = next
	}
	if last := path[len(path)-1]; c[last] == nil {
		c[last] = runtime.DeepCopyJSONValue(value)
	}
}

// each calls f with each object of a list.
func each(c map[string]any, list string, f func(map[string]any)) {
	all, _ := c[list].([]any)
	for _, element := range all {
		if o, ok := element.(map[string]any); ok {
			f(o)
		}
	}
}

func fillReplicas(c map[string]any) {
	set(c, int64(1), "spec", "replicas")
	fillPodSpec(at(c, "spec", "template", "spec"))
}

func fillDeployment(c map[string]any) {
	fillReplicas(c)
	set(c, "RollingUpdate", "spec", "strategy", "type")
	if strategy := at(c, "spec", "strategy"); strategy["type"] == "RollingUpdate" {
		set(strategy, "25%", "rollingUpdate", "maxSurge")
		set(strategy, "25%", "rollingUpdate", "maxUnavailable")
	}
	set(c, int64(10), "spec", "revisionHistoryLimit")
	set(c, int64(600), "spec", "progressDeadlineSeconds")
}

func fillStatefulSet(c map[string]any) {
	fillReplicas(c)
	set(c, "OrderedReady", "spec", "podManagementPolicy")
	set(c, int64(10), "spec", "revisionHistoryLimit")
	set(c, "RollingUpdate", "spec", "updateStrategy", "type")
	if strategy := at(c, "spec", "updateStrategy"); strategy["type"] == "RollingUpdate" {
		set(strategy, int64(0), "rollingUpdate", "partition")
	}
	set(c, "Retain", "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	set(c, "Retain", "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	each(at(c, "spec"), "volumeClaimTemplates", func(claim map[string]any) { set(claim, "Filesystem", "spec", "volumeMode") })
}

func fillDaemonSet(c map[string]any) {
	fillPodSpec(at(c, "spec", "template", "spec"))
	set(c, int64(10), "spec", "revisionHistoryLimit")
	set(c, "RollingUpdate", "spec", "updateStrategy", "type")
	if strategy := at(c, "spec", "updateStrategy"); strategy["type"] == "RollingUpdate" {
		set(strategy, int64(1), "rollingUpdate", "maxUnavailable")
		set(strategy, int64(0), "rollingUpdate", "maxSurge")
	}
}

func fillJob(spec map[string]any) {
	if spec == nil {
		return
	}
	if spec["completions"] == nil && spec["parallelism"] == nil {
		set(spec, int64(1), "completions")
	}
	set(spec, int64(1), "parallelism")
	set(spec, int64(6), "backoffLimit")
	set(spec, "NonIndexed", "completionMode")
	set(spec, false, "suspend")
	set(spec, "TerminatingOrFailed", "podReplacementPolicy")
	fillPodSpec(at(spec, "template", "spec"))
}

func fillCronJob(c map[string]any) {
	set(c, "Allow", "spec", "concurrencyPolicy")
	set(c, false, "spec", "suspend")
	set(c, int64(3), "spec", "successfulJobsHistoryLimit")
	set(c, int64(1), "spec", "failedJobsHistoryLimit")
	fillPodSpec(at(c, "spec", "jobTemplate", "spec", "template", "spec"))
}

func fillPod(c map[string]any) {
	fillAddresses(at(c, "status"))
	spec := at(c, "spec")
	fillPodSpec(spec)
	if spec == nil {
		return
	}
	set(spec, true, "enableServiceLinks")
	for _, list := range []string{"initContainers", "containers"} {
		each(spec, list, func(container map[string]any) {
			for name, limit := range at(container, "resources", "limits") {
				set(container, limit, "resources", "requests", name)
			}
		})
	}
}

// fillAddresses makes the address of a pod the first of its addresses, or the other way round.
func fillAddresses(status map[string]any) {
	ip, _ := status["podIP"].(string)
	all, _ := status["podIPs"].([]any)
	first, _ := append(all, nil)[0].(map[string]any)
	switch {
	case ip != "" && first["ip"] != ip:
		status["podIPs"] = []any{map[string]any{"ip": ip}}
	case ip == "" && first != nil:
		status["podIP"] = first["ip"]
	}
}

// Admit fills in what a server fills into a new pod after it has noted who manages its fields: its
// priority, and for how long it tolerates a node that is in trouble.
func Admit(pod map[string]any) {
	if spec := at(pod, "spec"); spec != nil {
		set(spec, "PreemptLowerPriority", "preemptionPolicy")
		set(spec, int64(0), "priority")
		tolerate(spec, "node.kubernetes.io/not-ready")
		tolerate(spec, "node.kubernetes.io/unreachable")
	}
}

// tolerate has a pod stay on a node with a taint for five minutes, if it says nothing else of it.
func tolerate(spec map[string]any, taint string) {
	all, _ := spec["tolerations"].([]any)
	for _, t := range all {
		t, _ := t.(map[string]any)
		if key, effect := t["key"], t["effect"]; (key == nil || key == "" || key == taint) && (effect == nil || effect == "" || effect == "NoExecute") {
			return
		}
	}
	spec["tolerations"] = append(slices.Clone(all), map[string]any{
		"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)})
}

func fillPodSpec(spec map[string]any) {
	if spec == nil {
		return
	}
	set(spec, "Always", "restartPolicy")
	set(spec, "ClusterFirst", "dnsPolicy")
	set(spec, "default-scheduler", "schedulerName")
	set(spec, int64(30), "terminationGracePeriodSeconds")
	set(spec, map[string]any{}, "securityContext")
	if name, ok := spec["serviceAccountName"].(string); ok && name != "" {
		set(spec, name, "serviceAccount")
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		each(spec, list, fillContainer)
	}
	each(spec, "volumes", fillPodVolume)
}

func fillContainer(c map[string]any) {
	set(c, "/dev/termination-log", "terminationMessagePath")
	set(c, "File", "terminationMessagePolicy")
	image, _ := c["image"].(string)
	set(c, pullPolicy(image), "imagePullPolicy")
	each(c, "ports", func(port map[string]any) { set(port, "TCP", "protocol") })
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		if p := at(c, probe); p != nil {
			fillProbe(p)
		}
	}
	each(c, "env", func(v map[string]any) {
		if ref := at(v, "valueFrom", "fieldRef"); ref != nil {
			set(ref, "v1", "apiVersion")
		}
	})
}

// pullPolicy is that of an image: one without a tag, or with the tag latest, may change.
func pullPolicy(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	if strings.Contains(name, "@") || tagged && tag != "latest" {
		return "IfNotPresent"
	}
	return "Always"
}

func fillProbe(p map[string]any) {
	set(p, int64(1), "timeoutSeconds")
	set(p, int64(10), "periodSeconds")
	set(p, int64(1), "successThreshold")
	set(p, int64(3), "failureThreshold")
	if get := at(p, "httpGet"); get != nil {
		set(get, "/", "path")
		set(get, "HTTP", "scheme")
	}
	if grpc := at(p, "grpc"); grpc != nil {
		set(grpc, "", "service")
	}
}

func fillPodVolume(v map[string]any) {
	for _, source := range []string{"configMap", "secret", "downwardAPI", "projected"} {
		if s := at(v, source); s != nil {
			set(s, int64(420), "defaultMode")
		}
	}
	if host := at(v, "hostPath"); host != nil {
		set(host, "", "type")
	}
	if len(v) == 1 {
		set(v, map[string]any{}, "emptyDir")
	}
}

func fillVolume(c map[string]any) {
	set(c, "Retain", "spec", "persistentVolumeReclaimPolicy")
	set(c, "Filesystem", "spec", "volumeMode")
}

func fillEndpoints(c map[string]any) {
	each(c, "subsets", func(subset map[string]any) {
		each(subset, "ports", func(port map[string]any) { set(port, "TCP", "protocol") })
	})
}

func fillSecret(c map[string]any) {
	set(c, "Opaque", "type")
	plain, ok := c["stringData"].(map[string]any)
	if !ok {
		return
	}
	delete(c, "stringData")
	for name, value := range plain {
		if text, ok := value.(string); ok {
			_ = unstructured.SetNestedField(c, base64.StdEncoding.EncodeToString([]byte(text)), "data", name) // data is a map
		}
	}
}

// Allocate gives a service what a server allocates for it, unless it had that before: before is
// nil for a new one. That is after the server has noted who manages the fields. A service has no
// address here: nothing listens on it.
func Allocate(service, before map[string]any) {
	spec := at(service, "spec")
	if spec == nil || spec["type"] == "ExternalName" {
		return
	}
	for _, name := range []string{"ipFamilies", "ipFamilyPolicy"} {
		if had, there, _ := unstructured.NestedFieldCopy(before, "spec", name); there {
			set(spec, had, name)
		}
	}
	set(spec, []any{"IPv4"}, "ipFamilies")
	set(spec, "SingleStack", "ipFamilyPolicy")
}

func fillService(c map[string]any) {
	spec := at(c, "spec")
	if spec == nil {
		return
	}
	set(spec, "ClusterIP", "type")
	set(spec, "None", "sessionAffinity")
	if spec["type"] != "ExternalName" {
		set(spec, "Cluster", "internalTrafficPolicy")
	}
	if spec["type"] == "NodePort" || spec["type"] == "LoadBalancer" {
		set(spec, "Cluster", "externalTrafficPolicy")
	}
	if spec["type"] == "LoadBalancer" {
		set(spec, true, "allocateLoadBalancerNodePorts")
	}
	if spec["sessionAffinity"] == "ClientIP" {
		set(spec, int64(10800), "sessionAffinityConfig", "clientIP", "timeoutSeconds")
	}
	each(spec, "ports", func(port map[string]any) {
		set(port, "TCP", "protocol")
		if target := port["targetPort"]; target == nil || target == int64(0) || target == "" {
			port["targetPort"] = port["port"]
		}
	})
}
