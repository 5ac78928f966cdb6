<%@ page import="java.util.*" contentType="text/html" session="false" %><%
    // A page of orders, sorted anew for each request.
    Random of = new Random(System.nanoTime());
    List<String> orders = new ArrayList<>();
    for (int i = 0; i < 2000; i++) orders.add(String.format("order %08x of item %d", of.nextInt(), of.nextInt(1000)));
    Collections.sort(orders);
%><html><body><ul><% for (String o : orders.subList(0, 200)) { %><li><%= o %></li>
<% } %></ul></body></html>
