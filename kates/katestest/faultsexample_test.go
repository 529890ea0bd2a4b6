package katestest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

// oneConfigMap plays an API server with one config map.
func oneConfigMap(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(corev1.ConfigMapList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		Items:    []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}},
	})
}

// A server is overloaded for a moment. client-go waits as Retry-After says.
func ExampleFaults() {
	server := httptest.NewServer(http.HandlerFunc(oneConfigMap))
	defer server.Close()

	faults := katestest.NewFaults(nil, 1) // in a test: NewFaults(t, 0)
	config := &rest.Config{Host: server.URL}
	config.Wrap(faults.Wrap)
	client := kubernetes.NewForConfigOrDie(config)

	lists := katestest.Match{Verb: "list", Resource: "configmaps"}
	faults.On(lists).Times(1).Status(http.StatusTooManyRequests, "", time.Second)

	list, err := client.CoreV1().ConfigMaps("prod").List(context.Background(), metav1.ListOptions{})
	fmt.Println(len(list.Items), err)
	for _, r := range faults.Requests(lists) {
		fmt.Println(r.Verb, r.Resource, r.Namespace, r.Status)
	}
	// Output:
	// 1 <nil>
	// list configmaps prod 429
	// list configmaps prod 200
}

// A connection goes silent without an error.
func ExampleNetwork() {
	network := katestest.NewNetwork(nil) // in a test: NewNetwork(t)
	defer network.Close()
	listener, err := network.Listen("api.test:80") // in memory
	if err != nil {
		panic(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(oneConfigMap)}}
	server.Start()
	defer server.Close()

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, Dial: network.DialContext})
	list := func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps("prod").List(ctx, metav1.ListOptions{})
		return err
	}
	fmt.Println(list(context.Background()))
	thaw := network.Freeze()
	impatient, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(list(impatient) != nil)
	thaw()
	fmt.Println(list(context.Background()))
	// Output:
	// <nil>
	// true
	// <nil>
}
