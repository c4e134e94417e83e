// The extender of the cluster tests. It reads requests with the types of kube-scheduler, and strictly, so that
// a field which the scheduler under test writes wrongly is refused here.
//
// It listens on a loopback port of its own choice. Every line that it writes to standard output is a JSON
// object: first {"Listening": "127.0.0.1:..."}, then one for each request with its verb and what was understood
// of it, or why it was refused.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// extender has the rules by which it answers, one flag each.
type extender struct {
	label  string
	suffix string
	prefer string
	drop   string
	client kubernetes.Interface
}

// line is what is written of one request.
type line struct {
	Verb  string
	Args  any    `json:",omitempty"`
	Error string `json:",omitempty"`
}

var output = log.New(os.Stdout, "", 0)

func main() {
	var e extender
	flag.StringVar(&e.label, "label", "", "the label that nodes need to pass filter")
	flag.StringVar(&e.suffix, "suffix", "", "how names end that pass filter where no nodes are sent")
	flag.StringVar(&e.prefer, "prefer", "", "the node that gets the highest score")
	flag.StringVar(&e.drop, "drop", "", "the node that is no candidate of preemption")
	kubeconfig := flag.String("kubeconfig", "", "the API server to bind pods at")
	flag.Parse()
	if err := e.serve(*kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "extender:", err)
		os.Exit(1)
	}
}

func (e *extender) serve(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if e.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	write(map[string]string{"Listening": listener.Addr().String()})
	mux := http.NewServeMux()
	mux.Handle("POST /filter", handler("filter", e.filter))
	mux.Handle("POST /prioritize", handler("prioritize", e.prioritize))
	mux.Handle("POST /preempt", handler("preempt", e.preempt))
	mux.Handle("POST /bind", handler("bind", e.bind))
	return http.Serve(listener, mux)
}

// handler reads the arguments of a verb, writes them down and sends the answer to them.
func handler[Args, Result any](verb string, answer func(context.Context, *Args) (Result, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		args := new(Args)
		if err := read(r, args); err != nil {
			refuse(w, verb, err)
			return
		}
		result, err := answer(r.Context(), args)
		if err != nil {
			refuse(w, verb, err)
			return
		}
		write(line{Verb: verb, Args: args})
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(result); err != nil {
			write(line{Verb: verb, Error: err.Error()})
		}
	})
}

// read allows one JSON document and no field that the types do not have.
func read(r *http.Request, args any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("the Content-Type is %q", r.Header.Get("Content-Type"))
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(args); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("there is more than one document")
	}
	return nil
}

func refuse(w http.ResponseWriter, verb string, err error) {
	write(line{Verb: verb, Error: err.Error()})
	http.Error(w, err.Error(), http.StatusBadRequest)
}

func write(value any) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(value); err != nil {
		output.Fatalln(err)
	}
	output.Print(text.String())
}

func (e *extender) filter(_ context.Context, args *extenderv1.ExtenderArgs) (*extenderv1.ExtenderFilterResult, error) {
	if err := checkNodes(args); err != nil {
		return nil, err
	}
	result := &extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{}}
	if args.NodeNames != nil {
		passing := []string{}
		for _, name := range *args.NodeNames {
			if strings.HasSuffix(name, e.suffix) {
				passing = append(passing, name)
			} else {
				result.FailedNodes[name] = fmt.Sprintf("the name does not end in %s", e.suffix)
			}
		}
		result.NodeNames = &passing
		return result, nil
	}
	result.Nodes = &v1.NodeList{}
	for _, node := range args.Nodes.Items {
		if _, found := node.Labels[e.label]; found {
			result.Nodes.Items = append(result.Nodes.Items, node)
		} else {
			result.FailedNodes[node.Name] = fmt.Sprintf("there is no label %s", e.label)
		}
	}
	return result, nil
}

func (e *extender) prioritize(_ context.Context, args *extenderv1.ExtenderArgs) (extenderv1.HostPriorityList, error) {
	if err := checkNodes(args); err != nil {
		return nil, err
	}
	names := []string{}
	if args.NodeNames != nil {
		names = *args.NodeNames
	} else {
		for _, node := range args.Nodes.Items {
			names = append(names, node.Name)
		}
	}
	result := extenderv1.HostPriorityList{}
	for _, name := range names {
		score := extenderv1.MinExtenderPriority
		if name == e.prefer {
			score = extenderv1.MaxExtenderPriority
		}
		result = append(result, extenderv1.HostPriority{Host: name, Score: score})
	}
	return result, nil
}

func (e *extender) preempt(_ context.Context, args *extenderv1.ExtenderPreemptionArgs) (*extenderv1.ExtenderPreemptionResult, error) {
	if args.Pod == nil || (args.NodeNameToVictims == nil) == (args.NodeNameToMetaVictims == nil) {
		return nil, errors.New("expected a pod, and either victims or meta victims")
	}
	result := &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: maps.Clone(args.NodeNameToMetaVictims)}
	if args.NodeNameToVictims != nil {
		result.NodeNameToMetaVictims = map[string]*extenderv1.MetaVictims{}
	}
	for node, victims := range args.NodeNameToVictims {
		meta := &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
		for _, pod := range victims.Pods {
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
		}
		result.NodeNameToMetaVictims[node] = meta
	}
	delete(result.NodeNameToMetaVictims, e.drop)
	return result, nil
}

func (e *extender) bind(ctx context.Context, args *extenderv1.ExtenderBindingArgs) (*extenderv1.ExtenderBindingResult, error) {
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: args.PodName, Namespace: args.PodNamespace, UID: args.PodUID},
		Target:     v1.ObjectReference{Kind: "Node", Name: args.Node},
	}
	result := &extenderv1.ExtenderBindingResult{}
	if err := e.client.CoreV1().Pods(args.PodNamespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		result.Error = err.Error()
	}
	return result, nil
}

// checkNodes wants what kube-scheduler sends: a pod, and either names or nodes.
func checkNodes(args *extenderv1.ExtenderArgs) error {
	if args.Pod == nil || (args.Nodes == nil) == (args.NodeNames == nil) {
		return errors.New("expected a pod, and either names or nodes")
	}
	return nil
}
