// Command flags makes a client from the flags that kubectl has.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/configflags"
	"github.com/kates-go/kates/kates/katestest"
)

func main() {
	web := &kates.Service{}
	web.Namespace, web.Name = "blue", "web"
	server, err := katestest.StartServer(katestest.WithObjects(web))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	// The server in memory has no address. A proxy gives it one.
	transport, err := rest.TransportFor(server.Config)
	if err != nil {
		log.Fatal(err)
	}
	target, err := url.Parse(server.Config.Host)
	if err != nil {
		log.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	defer proxy.Close()
	if err := os.Setenv("KUBECONFIG", os.DevNull); err != nil {
		log.Fatal(err)
	}
	config := configflags.NewConfigFlags(true)
	set := pflag.NewFlagSet("flags", pflag.ContinueOnError)
	config.AddFlags(set)
	if err := set.Parse([]string{"--server", proxy.URL, "--namespace", "blue"}); err != nil {
		log.Fatal(err)
	}
	client, err := configflags.NewClientFromConfigFlags(config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var got kates.Service
	if err := client.Get(context.Background(), &kates.Service{ObjectMeta: kates.ObjectMeta{Name: "web"}}, &got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Namespace, got.Name)
	// Output: blue web
}
