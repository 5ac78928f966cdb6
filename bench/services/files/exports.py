"""aiohttp: a page is answered on the event loop; an export is written by a thread of its default pool."""
import asyncio
import csv
import io
import sys

from aiohttp import web

ORDERS = [(n, f"shop {n % 40}", n * 7 % 1000 / 10, "paid" if n % 3 else "open") for n in range(30000)]


def export():
    out = io.StringIO()
    csv.writer(out).writerows(ORDERS)
    return out.getvalue()


async def page(_request):
    return web.Response(text="hello\n" * 20)


async def exported(_request):
    return web.Response(text=await asyncio.get_running_loop().run_in_executor(None, export), content_type="text/csv")


app = web.Application()
app.add_routes([web.get("/", page), web.get("/export", exported)])
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None)
